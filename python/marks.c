/* The part of daydream_torch that runs for every module call, in C: _daydream_marks.abi3.so.
 *
 * layers.py has the same functions in Python, for where this file was not built; change both. One
 * binary serves CPython 3.8 and later (the stable ABI), so only functions of that ABI are used.
 * Python's lock protects all that is not thread local.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "tracer/daydream_mark.h"

static void (*send)(uint32_t kind, uint32_t name, int64_t value);

/* Set by setup(), see there. */
static PyObject* ids;
static PyObject* label;
static PyTypeObject* tensor_type;
static PyTypeObject* leaf_type;
static PyObject* plain; /* function(type): whether asking such a tensor runs PyTorch's code only */
static PyObject* modes; /* None or function(): how many modes see every question to a tensor */
static PyObject* plain_types; /* {type: bool} */
static PyObject* on_root;     /* None or a function */
static PyObject* method_type; /* types.MethodType */
static int wanted;            /* whether module calls are marked now */

static PyObject* text_grad_fn;
static PyObject* text_register_prehook;
static PyObject* text_register_hook;
static PyObject* text_next_functions;

static _Thread_local uint32_t top;    /* innermost open layer of the thread, 0: none */
static _Thread_local PyObject* first; /* node at which the open layer's first call inside ends */
static _Thread_local uint32_t depth;  /* open module calls of the thread, with and without name */

static uint32_t* calls; /* by layer: how many of its calls were marked */
static uint32_t calls_size;

static int64_t next_call(uint32_t layer) {
  if (layer >= calls_size) {
    uint32_t size = layer < 1024 ? 2048 : 2 * layer;
    uint32_t* grown = PyMem_Realloc(calls, size * sizeof *calls);
    if (grown == NULL) return 0;
    memset(grown + calls_size, 0, (size - calls_size) * sizeof *calls);
    calls = grown;
    calls_size = size;
  }
  return calls[layer]++;
}

/* Forgets an exception that a mark of ours met. -1: it is for the program (Ctrl-C, exit), pass it
 * on. */
static int forgive(void) {
  if (PyErr_Occurred() == NULL) return 0;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  return 0;
}

/* ---- Backward: pre-hooks on graph nodes. They hold one int, never a tensor or a node. ---- */

static PyObject* backward_mark(uint32_t kind, PyObject* packed) {
  unsigned long long v = PyLong_AsUnsignedLongLong(packed);
  send(kind, (uint32_t)(v >> 32), (int64_t)(v & 0xffffffffu));
  Py_RETURN_NONE;
}

static PyObject* backward_enter(PyObject* packed, PyObject* grads) {
  (void)grads;
  return backward_mark(DAYDREAM_BACKWARD_ENTER, packed);
}

static PyObject* backward_exit(PyObject* packed, PyObject* grads) {
  (void)grads;
  return backward_mark(DAYDREAM_BACKWARD_EXIT, packed);
}

/* The same for hooks that run after the node. */
static PyObject* backward_exit_after(PyObject* packed, PyObject* grads) {
  return backward_exit(packed, grads);
}

static PyMethodDef enter_def = {"backward_enter", backward_enter, METH_O, NULL};
static PyMethodDef exit_def = {"backward_exit", backward_exit, METH_O, NULL};
static PyMethodDef exit_after_def = {"backward_exit", backward_exit_after, METH_VARARGS, NULL};

static void hook_node(PyObject* node, PyObject* method, PyMethodDef* hook, uint64_t says) {
  PyObject* packed = PyLong_FromUnsignedLongLong(says);
  PyObject* function = packed == NULL ? NULL : PyCFunction_NewEx(hook, packed, NULL);
  PyObject* handle =
      function == NULL ? NULL : PyObject_CallMethodObjArgs(node, method, function, NULL);
  Py_XDECREF(handle);
  Py_XDECREF(function);
  Py_XDECREF(packed);
}

/* Looks for tensors in arguments and results. Nodes seen at the inputs are kept during the call:
 * an output that has the same node passed through untouched and does not enter the layer. */
enum {
  kNodes = 32,
  kDeepest = 4,
  kObjects = 256,
  kChain = 16
}; /* bounds the time for odd arguments */
struct search {
  PyMethodDef* hook;
  uint64_t packed; /* layer and number of the call, what the hook says */
  PyObject* nodes[kNodes];
  int node_count;
  PyObject* output; /* node of the first output */
  int output_count;
  int objects;
};

static void add_hook(struct search* s, PyObject* node) {
  for (int i = 0; i < s->node_count; ++i) {
    if (s->nodes[i] == node) return;
  }
  if (s->hook == &exit_def && s->node_count < kNodes) {
    Py_INCREF(node);
    s->nodes[s->node_count++] = node;
  }
  if (s->hook == &enter_def && s->output_count++ == 0) {
    Py_INCREF(node);
    s->output = node;
  }
  hook_node(node, text_register_prehook, s->hook, s->packed);
}

/* Subclasses of tensors may run code of the program for every question (__torch_function__): those
 * are not asked. */
static int is_plain(PyObject* tensor) {
  PyObject* type = (PyObject*)Py_TYPE(tensor);
  PyObject* known = PyDict_GetItemWithError(plain_types, type);
  if (known != NULL) return known == Py_True;
  if (PyDict_Size(plain_types) > kObjects) PyDict_Clear(plain_types); /* types that come and go */
  known = PyObject_CallFunctionObjArgs(plain, type, NULL);
  const int answer = known == Py_True;
  if (known != NULL) PyDict_SetItem(plain_types, type, known);
  Py_XDECREF(known);
  return answer;
}

static int any_mode(void) {
  if (modes == Py_None) return 0;
  PyObject* count = PyObject_CallFunctionObjArgs(modes, NULL);
  const int any = count != NULL && PyLong_AsLong(count) != 0;
  Py_XDECREF(count);
  return any;
}

static void visit(struct search* s, PyObject* object, int level) {
  if (object == Py_None || level > kDeepest || ++s->objects > kObjects) return;
  if (PyObject_TypeCheck(object, tensor_type)) {
    if (!is_plain(object)) return;
    PyObject* node = PyObject_GetAttr(object, text_grad_fn);
    if (node != NULL && node != Py_None) add_hook(s, node);
    Py_XDECREF(node);
    if (forgive() != 0) s->objects = kObjects; /* search no further */
  } else if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(object); ++i) {
      visit(s, PyTuple_GetItem(object, i), level + 1);
    }
  } else if (PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PyList_Size(object); ++i) {
      PyObject* item = PyList_GetItem(object, i);
      Py_INCREF(item);
      visit(s, item, level + 1);
      Py_DECREF(item);
    }
  } else if (PyDict_Check(object)) {
    PyObject *key, *value;
    Py_ssize_t i = 0;
    while (PyDict_Next(object, &i, &key, &value)) {
      Py_INCREF(value);
      visit(s, value, level + 1);
      Py_DECREF(value);
    }
  }
}

/* A call whose inputs have no node runs its nodes in the backward pass until the first of them that
 * forward made. That is where its first inner call ends; without one, the end of the chain from its
 * output. NULL: the graph branches and nobody can say. A new reference. */
static PyObject* chain_end(PyObject* node) {
  Py_INCREF(node);
  for (int i = 0; i < kChain; ++i) {
    PyObject* pairs = PyObject_GetAttr(node, text_next_functions); /* ((node, number), ...) */
    PyObject* only = NULL;
    int nexts = 0;
    for (Py_ssize_t k = 0; pairs != NULL && k < PyTuple_Size(pairs); ++k) {
      PyObject* next = PyTuple_GetItem(PyTuple_GetItem(pairs, k), 0);
      if (next == NULL || next == Py_None || PyObject_TypeCheck(next, leaf_type)) continue;
      ++nexts;
      only = next;
    }
    if (pairs != NULL && nexts == 0) {
      Py_DECREF(pairs);
      return node;
    }
    Py_XINCREF(only);
    Py_DECREF(node);
    Py_XDECREF(pairs);
    node = only;
    if (nexts != 1) break;
  }
  Py_XDECREF(node);
  return NULL;
}

/* Ends the backward pass of a call without input nodes. Returns the node, a new reference. */
static PyObject* exit_after_first(struct search* s) {
  PyObject* node = first;
  if (node != NULL) {
    Py_INCREF(node);
  } else if (s->output_count == 1) {
    node = chain_end(s->output);
  }
  if (node != NULL) hook_node(node, text_register_hook, &exit_after_def, s->packed);
  return node;
}

/* Dropping the last reference of a node may run code: an exception under way is put aside. */
static void release(struct search* s) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  for (int i = 0; i < s->node_count; ++i) Py_DECREF(s->nodes[i]);
  Py_XDECREF(s->output);
  Py_XDECREF(first);
  PyErr_Restore(type, value, traceback);
}

/* ---- Forward ---- */

/* function(*args, **kwargs) between the marks of a layer. */
static PyObject* run_layer(uint32_t layer, PyObject* function, PyObject* args, PyObject* kwargs) {
  int64_t call = next_call(layer);
  struct search s;
  s.hook = &exit_def;
  s.packed = (uint64_t)layer << 32 | (uint32_t)call;
  s.node_count = s.output_count = s.objects = 0;
  s.output = NULL;
  const int asks = !any_mode();
  if (kwargs != NULL && PyDict_Size(kwargs) == 0) kwargs = NULL;
  if (asks) visit(&s, args, 0);
  if (asks && kwargs != NULL) visit(&s, kwargs, 0);
  PyObject *result = NULL, *outer_first = first, *end = NULL;
  uint32_t outer = top;
  first = NULL;
  if (forgive() == 0) {
    top = layer;
    send(DAYDREAM_LAYER_BEGIN, layer, call);
    result = PyObject_Call(function, args, kwargs);
    send(DAYDREAM_LAYER_END, 0, 0);
    top = outer;
  }
  if (result != NULL) {
    s.hook = &enter_def;
    s.objects = 0;
    if (asks) visit(&s, result, 0);
    if (s.node_count == 0 && s.output != NULL) end = exit_after_first(&s);
    if (forgive() != 0) {
      Py_DECREF(result);
      result = NULL;
    }
  }
  if (s.node_count != 0 || s.output != NULL || first != NULL) release(&s);
  first = outer_first != NULL || outer == 0 ? outer_first : end;
  if (first != end) Py_XDECREF(end);
  return result;
}

/* The layer of a module; 0: none. -1 with an exception that is for the program. */
static int64_t layer_of(PyObject* module) {
  PyObject* key = PyLong_FromVoidPtr(module); /* id(module) */
  PyObject* layer = key == NULL ? NULL : PyDict_GetItemWithError(ids, key);
  Py_XDECREF(key);
  if (layer != NULL) {
    Py_INCREF(layer);
  } else {
    PyErr_Clear();
    PyObject* open = PyLong_FromUnsignedLong(top);
    layer = PyObject_CallFunctionObjArgs(label, module, open, NULL);
    Py_XDECREF(open);
  }
  int64_t number = layer == NULL ? 0 : (int64_t)PyLong_AsUnsignedLong(layer);
  Py_XDECREF(layer);
  if (PyErr_Occurred() == NULL) return number;
  return forgive();
}

/* function(*args, **kwargs) as the call of module args[0]. */
static PyObject* call_marked(PyObject* function, PyObject* args, PyObject* kwargs) {
  PyObject* module = PyTuple_GetItem(args, 0);
  if (depth == 0 && on_root != Py_None) {
    PyObject* go_on = PyObject_CallFunctionObjArgs(on_root, module, NULL);
    Py_XDECREF(go_on);
    if (forgive() != 0) return NULL;
    if (go_on == Py_False) return PyObject_Call(function, args, kwargs);
  }
  int64_t layer = layer_of(module);
  if (layer < 0) return NULL;
  ++depth;
  PyObject* result = layer == 0 ? PyObject_Call(function, args, kwargs)
                                : run_layer((uint32_t)layer, function, args, kwargs);
  --depth;
  return result;
}

/* What stands in for nn.Module.__call__: a callable of C, so that a module call takes no frame of
 * Python beside its own. One level of the recursion limit goes to every object of C that is called;
 * it is given back for the time of the call, so that programs reach the depth they always reach. */
typedef struct {
  PyObject_HEAD PyObject* function;
} ModuleCall;

/* Of CPython 3.9 and later. */
static int (*enter_recursion)(const char* where);
static void (*leave_recursion)(void);

static PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* function = ((ModuleCall*)self)->function;
  if (enter_recursion != NULL) leave_recursion();
  PyObject* result = wanted && PyTuple_Size(args) > 0 ? call_marked(function, args, kwargs)
                                                      : PyObject_Call(function, args, kwargs);
  if (enter_recursion == NULL) return result;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (enter_recursion("") != 0) PyErr_Clear(); /* the program lowered its limit meanwhile */
  PyErr_Restore(type, value, traceback);
  return result;
}

static PyObject* module_call_bind(PyObject* self, PyObject* object, PyObject* type) {
  (void)type;
  if (object != NULL && object != Py_None) {
    return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
  }
  Py_INCREF(self);
  return self;
}

/* It looks as the function does: name, text, signature, code. */
static PyObject* module_call_attribute(PyObject* self, PyObject* name) {
  PyObject* function = ((ModuleCall*)self)->function;
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
    Py_INCREF(function);
    return function;
  }
  const int own = PyUnicode_CompareWithASCIIString(name, "__class__") == 0 ||
                  PyUnicode_CompareWithASCIIString(name, "__get__") == 0;
  return own ? PyObject_GenericGetAttr(self, name) : PyObject_GetAttr(function, name);
}

static PyType_Slot module_call_slots[] = {
    {Py_tp_call, (void*)module_call},
    {Py_tp_descr_get, (void*)module_call_bind},
    {Py_tp_getattro, (void*)module_call_attribute},
    {0, NULL},
};
/* wrap_call(function): stands in for it, and marks the calls while wanted. It is never freed. */
static PyObject* wrap_call(PyObject* self, PyObject* function) {
  (void)self;
  PyType_Spec spec = {"_daydream_marks.ModuleCall", sizeof(ModuleCall), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR, module_call_slots};
  PyObject* type = PyType_FromSpec(&spec);
  ModuleCall* made = type == NULL ? NULL : PyObject_New(ModuleCall, (PyTypeObject*)type);
  if (made == NULL) return NULL;
  Py_INCREF(function);
  made->function = function;
  Py_INCREF(made); /* for ever */
  return (PyObject*)made;
}

static PyObject* set_wanted(PyObject* self, PyObject* yes) {
  (void)self;
  wanted = yes == Py_True;
  Py_RETURN_NONE;
}

/* call_module(function, args, kwargs): function(*args, **kwargs) as the call of module args[0]. */
static PyObject* call_module(PyObject* self, PyObject* params) {
  (void)self;
  PyObject *function, *args, *kwargs;
  if (!PyArg_ParseTuple(params, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) {
    return NULL;
  }
  if (PyTuple_Size(args) == 0) return PyObject_Call(function, args, kwargs);
  return call_marked(function, args, kwargs);
}

/* call_layer(layer, function, args, kwargs): the same for a layer whose id is known. */
static PyObject* call_layer(PyObject* self, PyObject* params) {
  (void)self;
  unsigned int layer;
  PyObject *function, *args, *kwargs;
  if (!PyArg_ParseTuple(params, "IOO!O!", &layer, &function, &PyTuple_Type, &args, &PyDict_Type,
                        &kwargs)) {
    return NULL;
  }
  return layer == 0 ? PyObject_Call(function, args, kwargs)
                    : run_layer(layer, function, args, kwargs);
}

/* ---- Connection ---- */

static PyObject* mark(PyObject* self, PyObject* params) {
  (void)self;
  unsigned int kind, name;
  long long value;
  if (!PyArg_ParseTuple(params, "IIL", &kind, &name, &value)) return NULL;
  send(kind, name, value);
  Py_RETURN_NONE;
}

/* connect(path of libdaydream_inject.so) */
static PyObject* connect(PyObject* self, PyObject* path_text) {
  (void)self;
  PyObject* path = NULL;
  if (!PyUnicode_FSConverter(path_text, &path)) return NULL;
  void* library = dlopen(PyBytes_AsString(path), RTLD_NOW | RTLD_LOCAL);
  Py_DECREF(path);
  if (library != NULL) *(void**)&send = dlsym(library, "daydream_mark");
  if (send == NULL) {
    PyErr_SetString(PyExc_ImportError, "the recorder has no daydream_mark");
    return NULL;
  }
  Py_RETURN_NONE;
}

static void keep(PyObject** place, PyObject* object) {
  PyObject* old = *place;
  Py_INCREF(object);
  *place = object;
  Py_XDECREF(old);
}

/* setup(ids, label, type of tensors, type of the nodes of leaf tensors, plain, modes)
 * ids: {id(module): layer}; label(module, open layer) -> layer fills it, 0 is a layer without
 * marks; plain and modes: see there. */
static PyObject* setup(PyObject* self, PyObject* params) {
  (void)self;
  PyObject *d, *l, *t, *n, *p, *m;
  if (!PyArg_ParseTuple(params, "O!OO!O!OO", &PyDict_Type, &d, &l, &PyType_Type, &t, &PyType_Type,
                        &n, &p, &m)) {
    return NULL;
  }
  keep(&plain, p);
  keep(&modes, m);
  keep(&ids, d);
  keep(&label, l);
  keep((PyObject**)&tensor_type, t);
  keep((PyObject**)&leaf_type, n);
  Py_RETURN_NONE;
}

/* watch_roots(function or None): function(module) at every outermost module call of a thread;
 * False: this call has no marks. */
static PyObject* watch_roots(PyObject* self, PyObject* function) {
  (void)self;
  keep(&on_root, function);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"connect", connect, METH_O, NULL},
    {"setup", setup, METH_VARARGS, NULL},
    {"watch_roots", watch_roots, METH_O, NULL},
    {"mark", mark, METH_VARARGS, NULL},
    {"wrap_call", wrap_call, METH_O, NULL},
    {"set_wanted", set_wanted, METH_O, NULL},
    {"call_module", call_module, METH_VARARGS, NULL},
    {"call_layer", call_layer, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_daydream_marks", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__daydream_marks(void) {
  keep(&on_root, Py_None);
  keep(&modes, Py_None);
  plain_types = PyDict_New();
  PyObject* types = PyImport_ImportModule("types");
  if (types == NULL) return NULL;
  method_type = PyObject_GetAttrString(types, "MethodType");
  Py_DECREF(types);
  *(void**)&enter_recursion = dlsym(RTLD_DEFAULT, "Py_EnterRecursiveCall");
  *(void**)&leave_recursion = dlsym(RTLD_DEFAULT, "Py_LeaveRecursiveCall");
  if (leave_recursion == NULL) enter_recursion = NULL;
  text_grad_fn = PyUnicode_InternFromString("grad_fn");
  text_register_prehook = PyUnicode_InternFromString("register_prehook");
  text_register_hook = PyUnicode_InternFromString("register_hook");
  text_next_functions = PyUnicode_InternFromString("next_functions");
  return PyModule_Create(&definition);
}
