/* Receives the counters and the table of places of the instrumented extension, and offers them to Python.
 *
 * A library of its own: the extension exports nothing but its module, and Python finds these symbols by name.
 */
#include <stdint.h>

uint8_t *coverage_counters;
uintptr_t coverage_count;
const uintptr_t *coverage_places;

/* The linker merges the sections of all crates, so that every call names the same range. */
void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop) {
    coverage_counters = start;
    coverage_count = (uintptr_t)(stop - start);
}

/* Two words for each counter: its address, and 1 for the entry of a function. */
void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop) {
    (void)stop;
    coverage_places = start;
}
