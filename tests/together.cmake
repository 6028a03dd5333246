# Run by the build: writes the tests of SOURCES, separated by commas and relative to ROOT, as one file OUTPUT. What each has for
# itself stands in a namespace of its name, where alone it has one without a name; failures are told
# with the lines of the files.
string(REPLACE "," ";" SOURCES "${SOURCES}")
set(text "")
foreach(source ${SOURCES})
  file(READ ${ROOT}/${source} one)
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "\nnamespace {\n" "\nnamespace ${name} {\n" one "${one}")
  string(APPEND text "#line 1 \"${source}\"\n${one}\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
