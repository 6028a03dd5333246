#include "python/daydream/binding/bind_edit.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/daydream/binding/edit.h"
#include "python/daydream/binding/edit_docs.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace daydream {
namespace {

int64_t InsertAfter(Edit& e, int64_t task, const std::string& name, double ns) {
  return e.Insert(task, name, ns, true);
}
int64_t InsertBefore(Edit& e, int64_t task, const std::string& name, double ns) {
  return e.Insert(task, name, ns, false);
}

}  // namespace

void BindEdit(nb::module_& m) {
  nb::class_<Edit>(m, "Edit", kEditDoc)
      .def("select", &Edit::Select, "selector"_a, "relation"_a = "", kSelectDoc)
      .def("runs", &Edit::Runs, "tasks"_a, kRunsDoc)
      .def("times_ns", &Edit::TimesNs, "tasks"_a, kTimesNsDoc)
      .def("names", &Edit::Names, "tasks"_a, kNamesDoc)
      .def("task", &Edit::Task, "task"_a, kTaskDoc)
      .def("cause", &Edit::Cause, "what"_a, kCauseDoc)
      .def("note", &Edit::Note, "text"_a, kNoteDoc)
      .def("scale", &Edit::Scale, "tasks"_a, "factor"_a, kScaleDoc)
      .def("set_time", &Edit::SetTime, "tasks"_a, "ns"_a, kSetTimeDoc)
      .def("remove", &Edit::Remove, "tasks"_a, kRemoveDoc)
      .def("insert_after", &InsertAfter, "task"_a, "name"_a, "ns"_a, kInsertAfterDoc)
      .def("insert_before", &InsertBefore, "task"_a, "name"_a, "ns"_a, kInsertBeforeDoc)
      .def("fuse", &Edit::Fuse, "tasks"_a, "name"_a, "ns"_a, kFuseDoc)
      .def("fused_time_ns", &Edit::FusedTimeNs, "tasks"_a, "passes"_a = 2.5, "kept"_a = 0.0,
           "floor_ns"_a = 2000.0, kFusedTimeNsDoc)
      .def("merge", &Edit::Merge, "tasks"_a, "name"_a, "ns"_a, "cause"_a, kMergeDoc);
}

}  // namespace daydream
