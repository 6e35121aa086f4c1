# Sourced by the tests of the program from outside. PREFIX is the build tree: bin/, lib/, share/.
set -u
PREFIX=$1
AB=$PREFIX/bin/kestrel-ab
TOYS=$PREFIX/lib/test
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export KESTREL_AB_DB=$WORK/test.db
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect CODE WORDS... : runs WORDS, keeps its output in $WORK/out, and complains unless it exits with CODE.
expect() {
    local wanted=$1
    shift
    "$@" >"$WORK/out" 2>&1
    complain_unless "$wanted" $? "$@"
}

# complain_unless WANTED FOUND WORDS...
complain_unless() {
    local wanted=$1 found=$2
    shift 2
    if [ "$found" -ne "$wanted" ]; then
        fail "exit code $found instead of $wanted: $*"
        sed 's/^/    /' "$WORK/out" | tail -n 40
    fi
}

# expect_verdict CODE WORDS... : like expect, for a run with a known answer. UNDECIDED is the right one while the machine is busy with
# other work, so it may be said five times; any other answer is wrong at once.
expect_verdict() {
    local wanted=$1
    shift
    local found
    for _ in 1 2 3 4 5; do
        "$@" >"$WORK/out" 2>&1
        found=$?
        [ "$found" -eq 3 ] || break
    done
    complain_unless "$wanted" "$found" "$@"
}

# says TEXT: the last command printed it.
says() {
    grep -qF -- "$1" "$WORK/out" || {
        fail "'$1' is missing from:"
        sed 's/^/    /' "$WORK/out" | tail -n 40
    }
}

finish() {
    [ "$failures" -eq 0 ] || exit 1
    exit 0
}

# The smallest plan that reaches a verdict.
PLAN="--replicates 6 --tokens 8"
QUICK="$PLAN --super-rounds 1"
# Wide enough for a verdict on a machine that is busy with other work: these tests are about what is said, not about precision.
STEADY="$PLAN --super-rounds 8 --margin 40"
# Engines that keep no weights still want a model's path.
MODEL=mini-64l
