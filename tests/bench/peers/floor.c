/* The least that a compiled extension pays on this interpreter for a dict in and a dict out: no language, no limits,
   no messages, 64 bits without a look at overflow. Decimals are read from their layout and made with tp_alloc. It is
   a floor to measure against; nobody could use it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "the layout of Decimal is known for Python 3.11 to 3.13"
#endif

typedef struct {
    PyObject_HEAD
    Py_hash_t hash;
    uint8_t flags;
    Py_ssize_t exponent, digits, length, room;
    uint64_t *words;
    uint64_t own_words[4];
} Decimal;

enum { NEGATIVE = 1, SPECIAL = 0x0e, STATIC_DATA = 0x10 | 0x20 };

static PyTypeObject *decimal_type;
static const int64_t TEN_TO[] = {1, 10, 100, 1000, 10000, 100000, 1000000};

#define NAMES(X)                                                                                                       \
    X(amount) X(balance) X(currency) X(country) X(user_age_days) X(flagged) X(items) X(qty) X(unit_price) X(category)  \
    X(seed) X(n) X(decision) X(fee) X(risk) X(new_balance) X(subtotal) X(tax) X(discount) X(shipping) X(total)         \
    X(score) X(hits) X(state) X(approve) X(review) X(decline)
#define DECLARE(name) static PyObject *s_##name;
NAMES(DECLARE)

static PyObject *refused(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static int number_of(PyObject *inputs, PyObject *name, int64_t *found) {
    PyObject *value = PyDict_GetItemWithError(inputs, name);
    if (value == NULL || !PyLong_CheckExact(value)) return -1;
    *found = PyLong_AsLongLong(value);
    return *found == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Hundredths. */
static int decimal_of(PyObject *inputs, PyObject *name, int64_t *found) {
    PyObject *value = PyDict_GetItemWithError(inputs, name);
    if (value == NULL || Py_TYPE(value) != decimal_type) return -1;
    Decimal *decimal = (Decimal *)value;
    Py_ssize_t shift = decimal->exponent + 2;
    if ((decimal->flags & SPECIAL) || decimal->length != 1 || shift < 0 || shift > 6) return -1;
    int64_t whole = (int64_t)decimal->words[0] * TEN_TO[shift];
    *found = decimal->flags & NEGATIVE ? -whole : whole;
    return 0;
}

static const char *text_of(PyObject *inputs, PyObject *name, Py_ssize_t *length) {
    PyObject *value = PyDict_GetItemWithError(inputs, name);
    return value != NULL && PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8AndSize(value, length) : NULL;
}

static PyObject *decimal_from(int64_t value, int places) {
    Decimal *made = (Decimal *)decimal_type->tp_alloc(decimal_type, 0);
    if (made == NULL) return NULL;
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    Py_ssize_t digits = 1;
    for (uint64_t rest = size; rest >= 10; rest /= 10) digits++;
    made->hash = -1;
    made->flags = (uint8_t)(STATIC_DATA | (value < 0 ? NEGATIVE : 0));
    made->exponent = -places;
    made->digits = digits;
    made->length = 1;
    made->room = 4;
    made->words = made->own_words;
    made->own_words[0] = size;
    return (PyObject *)made;
}

/* Takes over the value. */
static int put(PyObject *outputs, PyObject *name, PyObject *value) {
    if (value == NULL) return -1;
    int failed = PyDict_SetItem(outputs, name, value);
    Py_DECREF(value);
    return failed;
}

static PyObject *payment_decision(PyObject *module, PyObject *inputs) {
    int64_t amount, balance, age;
    Py_ssize_t length;
    const char *text;
    if (!PyDict_CheckExact(inputs) || decimal_of(inputs, s_amount, &amount) || decimal_of(inputs, s_balance, &balance) ||
        number_of(inputs, s_user_age_days, &age))
        return refused("inputs");
    if (amount <= 0) return refused("amount > 0");
    text = text_of(inputs, s_currency, &length);
    if (text == NULL || length != 3 || (memcmp(text, "USD", 3) && memcmp(text, "EUR", 3) && memcmp(text, "GBP", 3)))
        return refused("currency");
    text = text_of(inputs, s_country, &length);
    if (text == NULL || length != 2) return refused("country");
    int is_risky = !memcmp(text, "NG", 2) || !memcmp(text, "RU", 2) || !memcmp(text, "KP", 2) || !memcmp(text, "IR", 2);
    PyObject *flagged = PyDict_GetItemWithError(inputs, s_flagged);
    if (flagged != Py_True && flagged != Py_False) return refused("flagged");

    int64_t fee = amount <= 10000 ? amount * 29 + 30000 : amount <= 100000 ? amount * 25 + 50000 : amount * 19 + 100000;
    int64_t risk = (flagged == Py_True) * 30 + (age < 30) * 20 + (amount > 100000) * 20 + is_risky * 15 +
                   (amount * 2 > balance) * 15;
    int64_t rest = (balance - amount) * 1000 - fee;
    PyObject *decision = rest < 0 || risk >= 70 ? s_decline : risk >= 40 ? s_review : s_approve;
    if (fee < 0 || (decision != s_decline && rest < 0)) return refused("postcondition");

    PyObject *outputs = PyDict_New();
    if (outputs == NULL) return NULL;
    if (PyDict_SetItem(outputs, s_decision, decision) || put(outputs, s_fee, decimal_from(fee, 5)) ||
        put(outputs, s_risk, PyLong_FromLongLong(risk)) || put(outputs, s_new_balance, decimal_from(rest, 5)))
        Py_CLEAR(outputs);
    return outputs;
}

static int64_t percent_of(const char *text, Py_ssize_t length) {
    if (length == 4 && !memcmp(text, "food", 4)) return 5;
    if (length == 4 && !memcmp(text, "book", 4)) return 0;
    if (length == 3 && !memcmp(text, "toy", 3)) return 20;
    if (length == 4 && !memcmp(text, "tool", 4)) return 18;
    return length == 5 && !memcmp(text, "other", 5) ? 10 : -1;
}

static PyObject *order_pricing(PyObject *module, PyObject *inputs) {
    PyObject *items = PyDict_CheckExact(inputs) ? PyDict_GetItemWithError(inputs, s_items) : NULL;
    if (items == NULL || !PyList_CheckExact(items)) return refused("inputs");
    int64_t cents = 0, tax = 0, pieces = 0;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items); at++) {
        PyObject *item = PyList_GET_ITEM(items, at);
        int64_t quantity, price;
        Py_ssize_t length;
        if (!PyDict_CheckExact(item) || number_of(item, s_qty, &quantity) || decimal_of(item, s_unit_price, &price))
            return refused("items");
        const char *text = text_of(item, s_category, &length);
        int64_t percent = text == NULL ? -1 : percent_of(text, length);
        if (quantity <= 0 || price < 0 || percent < 0) return refused("precondition");
        cents += quantity * price;
        tax += quantity * price * percent;
        pieces += quantity;
    }
    int64_t subtotal = cents * 100;
    int64_t discount = pieces >= 100 ? subtotal / 10 : pieces >= 50 ? subtotal / 20 : 0;
    int64_t shipping = subtotal - discount >= 5000000 ? 0 : 50000 + 2500 * pieces;
    int64_t total = subtotal - discount + tax + shipping;
    if (total < 0) return refused("postcondition");
    PyObject *outputs = PyDict_New();
    if (outputs == NULL) return NULL;
    if (put(outputs, s_subtotal, decimal_from(subtotal, 4)) || put(outputs, s_tax, decimal_from(tax, 4)) ||
        put(outputs, s_discount, decimal_from(discount, 4)) || put(outputs, s_shipping, decimal_from(shipping, 4)) ||
        put(outputs, s_total, decimal_from(total, 4)))
        Py_CLEAR(outputs);
    return outputs;
}

static PyObject *numeric_loop(PyObject *module, PyObject *inputs) {
    int64_t state, rounds, hits = 0;
    double score = 0;
    if (!PyDict_CheckExact(inputs) || number_of(inputs, s_seed, &state) || number_of(inputs, s_n, &rounds))
        return refused("inputs");
    if (rounds < 0) return refused("n >= 0");
    for (int64_t turn = 0; turn < rounds; turn++) {
        state = (state * 1103515245 + 12345) & 0x7fffffff;
        double x = (double)state / 2147483648.0, y = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1;
        if (y > 0.2) {
            score += y;
            hits++;
        } else {
            score -= 0.5 * x;
        }
    }
    PyObject *outputs = PyDict_New();
    if (outputs == NULL) return NULL;
    if (put(outputs, s_score, PyFloat_FromDouble(score)) || put(outputs, s_hits, PyLong_FromLongLong(hits)) ||
        put(outputs, s_state, PyLong_FromLongLong(state)))
        Py_CLEAR(outputs);
    return outputs;
}

static PyMethodDef METHODS[] = {
    {"payment_decision", payment_decision, METH_O, NULL},
    {"order_pricing", order_pricing, METH_O, NULL},
    {"numeric_loop", numeric_loop, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "floor", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_floor(void) {
    PyObject *decimals = PyImport_ImportModule("decimal");
    if (decimals == NULL) return NULL;
    decimal_type = (PyTypeObject *)PyObject_GetAttrString(decimals, "Decimal");
    Py_DECREF(decimals);
    if (decimal_type == NULL) return NULL;
    if (decimal_type->tp_basicsize != sizeof(Decimal)) {
        PyErr_SetString(PyExc_ImportError, "Decimal has another layout here");
        return NULL;
    }
#define INTERN(name)                                                                                                   \
    if ((s_##name = PyUnicode_InternFromString(#name)) == NULL) return NULL;
    NAMES(INTERN)
    return PyModule_Create(&MODULE);
}
