# Engine variants: one source list and at most one changed knob -> lib<NAME>.so with its manifest inside.
#
# Everything that could make two builds of the same sources differ is fixed here, so that a changed hash means changed content:
# the optimisation level does not follow CMAKE_BUILD_TYPE, no path of this machine reaches an object, and all variants of an
# engine share one SONAME, the same object names and the same link line.

set(KESTREL_ENGINE_DIR ${CMAKE_CURRENT_LIST_DIR})
get_filename_component(KESTREL_ROOT ${KESTREL_ENGINE_DIR}/.. ABSOLUTE)

# The last prefix map that matches wins, so the build folder, which may lie inside the sources, comes second.
set(KESTREL_ENGINE_COMPILE_OPTIONS
    -O3 -DNDEBUG -g0 -pthread -fvisibility=hidden -fvisibility-inlines-hidden -Werror=date-time
    -ffile-prefix-map=${KESTREL_ROOT}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)

# What nvcc gets instead. Its intermediate files' names would otherwise reach the object, and its kernels the symbol table.
string(JOIN "," host_options -fPIC -pthread -fvisibility=hidden -fvisibility-inlines-hidden -fno-gnu-unique -ffp-contract=off
       -Werror=date-time -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror
       -ffile-prefix-map=${KESTREL_ROOT}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
set(KESTREL_ENGINE_CUDA_OPTIONS
    -O3 -DNDEBUG -fmad=false -objtemp --compress-mode=none -static-global-template-stub=true
    -device-entity-has-hidden-visibility=true -Xcompiler=${host_options})

set(KESTREL_ENGINE_LINK_OPTIONS
    -shared -pthread -static-libgcc -Wl,--version-script=${KESTREL_ENGINE_DIR}/exports.map -Wl,-Bsymbolic -Wl,-z,defs
    -Wl,-z,now -Wl,-z,nodelete -Wl,--exclude-libs,ALL -Wl,--build-id=sha1)
if(KESTREL_SANITIZE)
  # The sanitizers intercept exceptions in the shared C++ runtime; a private copy in the library would escape them.
  list(APPEND KESTREL_ENGINE_LINK_OPTIONS -fsanitize=${KESTREL_SANITIZE})
  list(REMOVE_ITEM KESTREL_ENGINE_LINK_OPTIONS -static-libgcc)
else()
  list(APPEND KESTREL_ENGINE_LINK_OPTIONS -static-libstdc++)
endif()

# kestrel_engine_objects(TARGET SOURCES a.cpp b.cpp [DEFINE X=1 | FLAG -fx])
#
# Adds object library TARGET, compiled as engines are.
function(kestrel_engine_objects target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DEFINE;FLAG" "SOURCES")
  add_library(${target} OBJECT ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE kestrel_options)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${KESTREL_ENGINE_COMPILE_OPTIONS}>"
                                           "$<$<COMPILE_LANGUAGE:CUDA>:${KESTREL_ENGINE_CUDA_OPTIONS}>" ${arg_FLAG})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINE})
  # Replaces a launcher such as ccache on purpose: the manifest must come from the compiler that ran.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                             CXX_COMPILER_LAUNCHER "sh;${KESTREL_ENGINE_DIR}/manifest/keep_depfile.sh"
                                             CUDA_COMPILER_LAUNCHER "sh;${KESTREL_ENGINE_DIR}/manifest/keep_depfile.sh")
  kestrel_seed_sources(${arg_SOURCES})
endfunction()

# kestrel_engine_variant(NAME kestrel_cpu_x ENGINE kestrel_cpu SOURCES a.cpp b.cpp [COMMON c.cpp] [OBJECTS d.o] [LIBRARIES a.a -lb]
#                        [DEFINE X=1 | FLAG -fx] [NO_INSTALL])
#
# Adds target NAME, which builds ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lib<NAME>.so, and makes kestrel_engines depend on it.
#   ENGINE   name in the manifest and SONAME; the same for all variants of an engine
#   SOURCES  the same list for all variants, relative to the current folder
#   COMMON   more sources, which other engines have too: variants without a knob take the objects of kestrel_common_objects, which are
#            compiled by the very same command, a variant with a knob compiles its own
#   OBJECTS  objects of another engine that this one wraps
#   LIBRARIES     what the linker reads after the objects
#   DEFINE, FLAG  the knob: one preprocessor definition or one compiler flag, for every source
#   NO_INSTALL    for engines that only tests use; kestrel_engines does not build them either
function(kestrel_engine_variant)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_INSTALL" "NAME;ENGINE;DEFINE;FLAG" "SOURCES;COMMON;OBJECTS;LIBRARIES")
  if(NOT arg_NAME OR NOT arg_ENGINE OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kestrel_engine_variant needs NAME, ENGINE and SOURCES; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_DEFINE AND arg_FLAG)
    message(FATAL_ERROR "engine variant ${arg_NAME} changes two knobs; a variant differs in one place")
  endif()

  kestrel_engine_objects(${arg_NAME}_objects SOURCES ${arg_SOURCES} DEFINE "${arg_DEFINE}" FLAG "${arg_FLAG}")
  if(arg_ENGINE STREQUAL kestrel_cuda)
    target_include_directories(${arg_NAME}_objects SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  set(objects $<TARGET_OBJECTS:${arg_NAME}_objects> ${arg_OBJECTS})
  if(arg_COMMON)
    set(common kestrel_common_objects)
    if(arg_DEFINE OR arg_FLAG)
      set(common ${arg_NAME}_common_objects)
    endif()
    if(NOT TARGET ${common})
      kestrel_engine_objects(${common} SOURCES ${arg_COMMON} DEFINE "${arg_DEFINE}" FLAG "${arg_FLAG}")
    endif()
    list(APPEND objects $<TARGET_OBJECTS:${common}>)
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.manifest)
  file(MAKE_DIRECTORY ${folder})
  set(library ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lib${arg_NAME}.so)
  # LD_RUN_PATH would end up in the library, the others would change which files are linked.
  set(clean ${CMAKE_COMMAND} -E env --unset=LD_RUN_PATH --unset=LIBRARY_PATH --unset=COMPILER_PATH --unset=GCC_EXEC_PREFIX LC_ALL=C)
  separate_arguments(user_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}")
  set(link ${CMAKE_CXX_COMPILER} ${user_flags} ${KESTREL_ENGINE_LINK_OPTIONS} -Wl,-soname,lib${arg_ENGINE}.so)

  add_custom_command(
    OUTPUT ${folder}/manifest.json
    COMMAND ${clean} $<TARGET_FILE:kestrel_make_manifest> --engine ${arg_ENGINE} --target ${CMAKE_SYSTEM_PROCESSOR} --source-root
            ${KESTREL_ROOT} --build-root ${CMAKE_BINARY_DIR} --out ${folder}/manifest.json --note
            ${KESTREL_ENGINE_DIR}/manifest/note.s --objects ${objects} --libraries ${arg_LIBRARIES} --link ${link}
    DEPENDS kestrel_make_manifest ${objects} ${KESTREL_ENGINE_DIR}/exports.map ${KESTREL_ENGINE_DIR}/manifest/note.s
    COMMENT "Manifest of lib${arg_NAME}.so"
    COMMAND_EXPAND_LISTS VERBATIM)
  # The assembler runs in the manifest's folder, so that no path of this machine is in what it reads.
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${clean} ${CMAKE_CXX_COMPILER} -c ${KESTREL_ENGINE_DIR}/manifest/note.s -o note.o
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
    COMMAND ${clean} ${link} ${objects} note.o ${arg_LIBRARIES} -o ${library}
    DEPENDS ${folder}/manifest.json ${objects}
    WORKING_DIRECTORY ${folder}
    COMMENT "Linking engine lib${arg_NAME}.so"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${arg_NAME} ALL DEPENDS ${library})
  if(NOT arg_NO_INSTALL)
    add_dependencies(kestrel_engines ${arg_NAME})
    install(PROGRAMS ${library} DESTINATION lib)
  endif()
endfunction()

# Gives each source its own seed for names the compiler invents; unseeded they would be random or depend on the output's path.
function(kestrel_seed_sources)
  foreach(source IN LISTS ARGN)
    get_filename_component(absolute ${source} ABSOLUTE)
    file(RELATIVE_PATH relative ${KESTREL_ROOT} ${absolute})
    get_property(options SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    if(NOT "-frandom-seed=${relative}" IN_LIST options)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -frandom-seed=${relative})
    endif()
  endforeach()
endfunction()
