/* Tells callgrind from Python when to count: `make bench-instructions`. Without valgrind all of it does nothing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <valgrind/callgrind.h>

static PyObject *begin(PyObject *module, PyObject *nothing) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    Py_RETURN_NONE;
}

/* Writes what was counted since `begin`, under a name. */
static PyObject *end(PyObject *module, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL) return NULL;
    CALLGRIND_DUMP_STATS_AT(text);
    CALLGRIND_STOP_INSTRUMENTATION;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"begin", begin, METH_NOARGS, NULL},
    {"end", end, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "marks", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_marks(void) { return PyModule_Create(&MODULE); }
