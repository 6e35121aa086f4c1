#!/bin/bash
# Windows at a position: the tokens before it are decoded once for the whole session, and what can go wrong with that.
. "$(dirname "$0")/common.sh"
AT="--position 40"

# measured WORDS... : a session to its seal, whatever it says of speed; $WORK/shown is what was stored.
measured() {
    "$AB" run "$@" >"$WORK/out" 2>&1
    case $? in 0 | 1 | 3 | 5) ;; *) complain_unless 0 $? "$@" ;; esac
    "$AB" show "$("$AB" list --json | grep -o '"uuid": *"[^"]*"' | cut -d'"' -f4 | head -n 1)" --json >"$WORK/shown"
}
# counted NUMBER TEXT : so many lines of the stored session have it.
counted() {
    local found
    found=$(grep -c -- "$2" "$WORK/shown")
    [ "$found" -eq "$1" ] || {
        fail "'$2' is stored $found times instead of $1"
        grep -B1 -A1 '"detail"' "$WORK/shown" | sed 's/^/    /'
    }
}
states() { tr -d ' \n' <"$WORK/shown" | grep -o '"state_digest":\[[^]]*\]' | sort -u; }

# The CPU engine: 24 tokens of context and 5 more leave the state that 29 tokens leave which are all decoded in the window.
CPU="gdn-register --model $MODEL --replicates 2 --super-rounds 1 --seed 7"
# shellcheck disable=SC2086
measured $CPU --position 24 --tokens 4
counted 1 "24 tokens, decoded by base in .* the states after them are bit-identical, one file of"
with=$(states)
# shellcheck disable=SC2086
measured $CPU --tokens 28
counted 0 "tokens, decoded by base"
[ "$(echo "$with" | grep -c .)" -eq 1 ] || fail "not one final state: $with"
[ "$with" = "$(states)" ] || fail "a restored context ends in another state: $with instead of $(states)"

# A crash or a hang while the context is decoded is that arm's, and nothing was measured by then.
# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_crash.so" --model $MODEL $QUICK $AT
says "the context's worker crashed"
says "signal 11"
says "'context, token 16'"
says "reproduced by running candidate alone"
# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy_hang.so" --candidate "$TOYS/libtoy.so" --model $MODEL $QUICK $AT --patience 2
says "the context's worker hung"
says "reproduced by running base alone"
expect 0 "$AB" show "$("$AB" list --json | grep -o '"uuid": *"[^"]*"' | cut -d'"' -f4 | head -n 1)"
says "aborted"

# Another state after the same context is another output, although no token shows it.
# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_other_state.so" --model $MODEL $QUICK $AT
says "INVALID"
says "OUTPUT"
says "first in the state after the context of 40 tokens"

# An engine that cannot save its state is measured at position 0 only.
# shellcheck disable=SC2086
expect 2 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_stateless.so" --model $MODEL $QUICK $AT
says "cannot save its state"

# harmed WORDS... : starts a session, does WORDS to the file of the state as soon as it is there, and expects the session to notice.
harmed() {
    local session state=
    # shellcheck disable=SC2086
    "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL $PLAN $AT --super-rounds 40 >"$WORK/out" 2>&1 &
    session=$!
    for _ in $(seq 400); do
        state=$(ls "$WORK"/*/arms/*/context0.state 2>/dev/null) && break
        sleep 0.05
    done
    [ -n "$state" ] || fail "no file of a state was found"
    "$@" "$state"
    wait $session
    complain_unless 5 $? "a session whose context met: $*"
    says "context0.state"
}
overwrite() { printf '\125\252\125\252' | dd of="$1" bs=1 seek=2 conv=notrunc 2>/dev/null; }
harmed overwrite
says "is damaged: expected SHA-256"
harmed rm
says "cannot be read back"

# States go with their session, however it ended.
[ -z "$(ls "$WORK"/*/arms 2>/dev/null)" ] || fail "files of a session are left: $(ls "$WORK"/*/arms/*)"

finish
