# Writes a C++ file that holds text files as strings: cmake -DOUT=FILE -DHEADER=INCLUDE -DFROM=FOLDER -P embed.cmake
# Each of the files below becomes a function of its name, with _ for the dot.
set(text "// Made by cmake/embed.cmake of the files in ${FROM}.\n#include \"${HEADER}\"\n\nnamespace dhc {\n")
foreach(file page.html page.css page.js model.js parts.js icon.svg)
  file(READ "${FROM}/${file}" content)
  string(REPLACE "." "_" name "${file}")
  string(APPEND text "\nstd::string_view ${name}() {\n  return R\"~~~~(${content})~~~~\";\n}\n")
endforeach()
string(APPEND text "\n}  // namespace dhc\n")
file(WRITE "${OUT}" "${text}")
