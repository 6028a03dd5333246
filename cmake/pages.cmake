# The manual page and the completions: what the program prints, installed beside it
# where all was built.
set(pages ${PROJECT_BINARY_DIR}/pages)
set(made)
foreach(page "daydream.1|help --man" "daydream.bash|completions bash" "_daydream|completions zsh"
        "daydream.fish|completions fish")
  string(REPLACE "|" ";" page "${page}")
  list(GET page 0 name)
  list(GET page 1 arguments)
  separate_arguments(arguments)
  add_custom_command(OUTPUT ${pages}/${name} DEPENDS daydream
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND daydream ${arguments} > ${pages}/${name})
  list(APPEND made ${pages}/${name})
endforeach()
add_custom_target(daydream_pages ALL DEPENDS ${made})
install(FILES ${pages}/daydream.1 DESTINATION share/man/man1 COMPONENT program OPTIONAL)
install(FILES ${pages}/daydream.bash DESTINATION share/bash-completion/completions
        RENAME daydream COMPONENT program OPTIONAL)
install(FILES ${pages}/_daydream DESTINATION share/zsh/site-functions COMPONENT program OPTIONAL)
install(FILES ${pages}/daydream.fish DESTINATION share/fish/vendor_completions.d COMPONENT program OPTIONAL)
