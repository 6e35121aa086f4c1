#!/bin/sh
# Compiler launcher of the engine variants: runs the compiler and keeps what the manifest needs beside the object.
#   OBJECT.cmd  working directory and command, each part ended by a null; written first, so its age is the compilation's start
#   OBJECT.dep  the compiler's own dependency file, which Ninja deletes once it has read it
# Usage: keep_depfile.sh COMPILER ARGUMENT...
set -eu

# These change what the compiler reads or writes without showing in its command.
unset CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH COMPILER_PATH GCC_EXEC_PREFIX LIBRARY_PATH SOURCE_DATE_EPOCH
unset DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES GCC_COMPARE_DEBUG NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS
LC_ALL=C
export LC_ALL

object=
depfile=
previous=
for argument in "$@"; do
  case $previous in
    -o) object=$argument ;;
    -MF) depfile=$argument ;;
  esac
  previous=$argument
done
if [ -z "$object" ] || [ -z "$depfile" ]; then
  echo "keep_depfile.sh: the command has no -o or no -MF, so no manifest can be made from it: $*" >&2
  exit 1
fi

rm -f "$object.dep"
printf '%s\0' "$PWD" "$@" >"$object.cmd"
"$@"
cp "$depfile" "$object.dep"
