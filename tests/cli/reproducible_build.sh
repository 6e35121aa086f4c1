#!/bin/sh
# Builds the engine libraries from a copy of the sources in another folder and compares their SHA-256 with those in LIBRARY_DIR or, without
# it, with a third copy's. The folders differ in name and in length, one build folder lies inside its sources and the other beside them,
# and the build types differ: none of that may reach a library.
# Usage: reproducible_build.sh SOURCE_DIR SCRATCH_DIR [LIBRARY_DIR]
# Without KESTREL_REPRODUCE_ALL=1 in the environment only libkestrel_cpu.so is compared: all libraries, CUDA's too, take ten minutes more, and
# the same rules (engine/variant.cmake) build every one of them.
# Exit status: 0 equal, 1 a library differs or is missing, 2 usage or a failed build.
set -eu

if [ $# -lt 2 ] || [ $# -gt 3 ] || [ ! -f "$1/CMakeLists.txt" ]; then
  echo "usage: $0 SOURCE_DIR SCRATCH_DIR [LIBRARY_DIR]" >&2
  exit 2
fi
source_dir=$(cd "$1" && pwd)
cuda=OFF
target=kestrel_cpu
if [ "${KESTREL_REPRODUCE_ALL:-}" = 1 ]; then
  cuda=ON
  target=kestrel_engines
fi
mkdir -p "$2"
scratch=$(mktemp -d "$(cd "$2" && pwd)/reproducible.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# The scratch folder usually lies in a build folder inside the sources; a copy must not copy itself.
skip=build
case $scratch in
  "$source_dir"/*)
    skip=${scratch#"$source_dir"/}
    skip=${skip%%/*}
    ;;
esac

# build_copy SOURCES BUILD_FOLDER BUILD_TYPE
build_copy() {
  mkdir -p "$1"
  tar -C "$source_dir" --exclude=./build --exclude="./$skip" --exclude=./.git -cf - . | tar -C "$1" -xf -
  log=$scratch/log
  if ! { cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE="$3" -DKESTREL_TESTS=OFF -DKESTREL_CUDA="$cuda" &&
         cmake --build "$2" --target "$target"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "the build in $2 failed" >&2
    exit 2
  fi
}

long=$scratch/a-folder-with-a-much-longer-name/and-one-more-level
build_copy "$long" "$scratch/elsewhere" Debug
if [ $# -eq 3 ]; then
  built=$(cd "$3" && pwd)
else
  build_copy "$scratch/a" "$scratch/a/build/release" Release
  built=$scratch/a/build/release/lib
fi

status=0
count=0
for library in "$scratch"/elsewhere/lib/lib*.so; do
  name=$(basename "$library")
  first=$(sha256sum "$built/$name" 2>/dev/null | cut -d' ' -f1)
  second=$(sha256sum "$library" | cut -d' ' -f1)
  count=$((count + 1))
  if [ -n "$first" ] && [ "$first" = "$second" ]; then
    result=equal
  else
    result=DIFFERENT
    status=1
  fi
  printf '%-36s %s %s %s\n' "$name" "${first:-missing}" "$second" "$result"
done
if [ "$count" -eq 0 ]; then
  echo "no engine library was built" >&2
  exit 1
fi
exit $status
