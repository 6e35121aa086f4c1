#!/bin/bash
# Who may include whom (README, "Folder map"). Fails with the line that breaks it.
cd "$1" || exit 1
status=0

# forbid FOLDER PATTERN REASON: no file below FOLDER includes a path that matches PATTERN.
forbid() {
    local found
    [ -d "$1" ] || {
        echo "the folder $1, which is checked here, does not exist"
        status=1
    }
    found=$(grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($2)" --include='*.cpp' --include='*.hpp' --include='*.h' \
        --include='*.inc' --include='*.cu' --include='*.cuh' "$1")
    if [ -n "$found" ]; then
        printf '%s\n    %s\n' "$3" "$found"
        status=1
    fi
}

forbid engine '(runner|store|reports|tests)/' "engine includes nothing of the others"
forbid runner/record '(engine|store|reports|tests|runner/(identity|plan|platform|plugin|session|stats|telemetry|main))/' "records depend on nothing"
for box in identity plan platform plugin session stats telemetry; do
    forbid runner/$box '(store|reports|tests|runner/main)/|sqlite3\.h' "runner knows no SQL and prints no report"
    case $box in plugin | identity) ;; *) forbid runner/$box 'engine/' "only plugin and identity read engine/abi.h" ;; esac
done
for box in plugin identity; do forbid runner/$box 'engine/([^a]|a[^b])' "engine/abi.h is the engine's only face"; done
forbid runner/plan 'runner/(identity|platform|plugin|session|stats|telemetry)/' "a plan is a pure function of a request"
forbid runner/platform 'runner/(identity|plan|plugin|session|stats|telemetry)/' "the operating system's interface knows no box above it"
forbid runner/plugin 'runner/(identity|plan|session|stats|telemetry)/' "loading an engine needs the platform and records only"
forbid runner/identity 'runner/(plan|plugin|session|stats|telemetry)/' "identity is read from files, without loading an engine"
forbid runner/telemetry 'runner/(identity|plan|plugin|session|stats)/' "telemetry reads the platform's counters, and judges nothing"
forbid runner/stats 'runner/(identity|plan|platform|plugin|session|telemetry)/' "the statistics are pure functions of records"
forbid store '(engine|reports|tests|runner/(identity|plan|platform|plugin|session|stats|telemetry|main))/' "store knows records, not engines"
forbid reports '(engine|store|tests|runner/(identity|plan|platform|plugin|session|telemetry|main))/|sqlite3\.h|fstream' "reports are pure functions from records to text"
for folder in engine reports runner; do forbid $folder 'sqlite3\.h' "store is the only user of sqlite3.h"; done
for folder in runner/identity runner/plan runner/plugin runner/session runner/stats runner/telemetry runner/main store reports; do
    forbid $folder 'dlfcn\.h|link\.h' "loading libraries stays behind runner/platform"
done

# The canary: the check itself must be able to fail.
canary=$(mktemp -d)
mkdir "$canary/engine"
echo '#include "store/sqlite.hpp"' >"$canary/engine/canary.cpp"
if (cd "$canary" && forbid engine '(runner|store|reports|tests)/' canary >/dev/null; exit $status); then
    echo "the include check does not notice a planted violation"
    status=1
fi
rm -rf "$canary"

# Every kernel of the engine waits for the one before it (engine/cuda/kernel_launch.cuh), or overlapping launches would race.
kernels_without_wait() {
    awk '/__global__/ { kernel = FILENAME ":" FNR; waits = 0 }
         /wait_for_previous\(\)|add_tiles</ { waits = 1 }  # add_tiles waits itself
         /^}/ { if (kernel != "" && !waits) print kernel; kernel = "" }' "$@"
}
unsafe=$(kernels_without_wait engine/cuda/*.cu engine/cuda/*.cuh engine/cuda/*.inc)
if [ -n "$unsafe" ]; then
    printf 'kernels that do not call wait_for_previous():\n    %s\n' "$unsafe"
    status=1
fi
if [ -z "$(printf '__global__ void k() {\n    work();\n}\n' | kernels_without_wait /dev/stdin)" ]; then
    echo "the check of kernels does not notice one without a wait"
    status=1
fi

# String literals stay ASCII: under another code page they would be something else.
if grep -rnP '[^\x00-\x7F]' --include='*.cpp' --include='*.hpp' --include='*.h' --include='*.inc' --include='*.cu' --include='*.cuh' engine \
    runner store reports; then
    echo "sources must be ASCII"
    status=1
fi
exit $status
