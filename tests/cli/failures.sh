#!/bin/bash
# Crashes, hangs, kill -9: what is stored afterwards and that the next run works.
. "$(dirname "$0")/common.sh"

# A crash in one arm is that arm's result, not the service's.
# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_crash.so" --model $MODEL $QUICK
says "candidate alone"
says "signal 11"
expect 0 "$AB" list
says "aborted"

# kill -9 of the supervisor in the middle.
# shellcheck disable=SC2086
"$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL $PLAN --super-rounds 200 >"$WORK/killed" 2>&1 &
supervisor=$!
for _ in $(seq 200); do
    "$AB" list --json 2>/dev/null | grep -q '"state": *"running"' && break
    sleep 0.05
done
sleep 1
worker=$(pgrep -P $supervisor | head -n 1)
[ -n "$worker" ] || fail "no worker was found"
# The worker holds the device lock itself: a supervisor's death must not free the device while engine code runs.
readlink "/proc/$worker/fd/4" | grep -q 'kestrel-ab-cpu.lock' || fail "the worker does not hold the device lock"
kill -9 $supervisor
wait $supervisor 2>/dev/null
for _ in $(seq 100); do kill -0 "$worker" 2>/dev/null || break; sleep 0.05; done
kill -0 "$worker" 2>/dev/null && fail "the worker outlived its supervisor"

killed=$("$AB" list --json | grep -o '"uuid": *"[^"]*"' | cut -d'"' -f4 | head -n 1) # the newest
# The next run works, and shows the abandoned session as aborted with its finished rounds.
# shellcheck disable=SC2086
expect_verdict 0 "$AB" run --base "$TOYS/libtoy_slow.so" --candidate "$TOYS/libtoy.so" --model $MODEL $STEADY
expect 0 "$AB" show "$killed" --json
says '"output_digest"'
says '"aborted"'
aborted=$("$AB" list --json | grep -c '"state": *"aborted"')
[ "$aborted" -eq 2 ] || fail "$aborted aborted sessions instead of 2"
"$AB" list --json | grep -q '"state": *"running"' && fail "a dead session is still shown as running"

# kill -9 of the worker.
# shellcheck disable=SC2086
"$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL $PLAN --super-rounds 200 >"$WORK/out" 2>&1 &
supervisor=$!
for _ in $(seq 200); do
    "$AB" list --json 2>/dev/null | grep -q '"state": *"running"' && break
    sleep 0.05
done
sleep 1
# A second runner on the same device is told who is there.
# shellcheck disable=SC2086
"$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL $QUICK >"$WORK/second" 2>&1
[ $? -eq 5 ] || fail "a second runner was not refused"
grep -q "another runner" "$WORK/second" || fail "the second runner was not told why"
kill -9 "$(pgrep -P $supervisor | head -n 1)"
wait $supervisor
[ $? -eq 5 ] || fail "a killed worker did not end in exit code 5"
says "signal 9"
says "unattributed"

# A hang is noticed, and replayed alone to see whose it is.
# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_hang.so" --model $MODEL $QUICK --patience 2
says "no word for 2 s"
says "reproduced by running candidate alone"

# What changed reached no object: nothing to measure.
expect 0 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_unused.so" --model $MODEL
says "TOY_UNUSED"

# A report that cannot be written is an error.
expect 6 sh -c '"$0" list >/dev/full' "$AB"

# Nothing of a killed session stays behind.
[ -z "$(ls "$WORK"/*/arms 2>/dev/null)" ] || fail "copies of arms are left: $(ls "$WORK"/*/arms)"

# A damaged database is said to be one.
head -c 5000 /dev/urandom >"$WORK/damaged.db"
expect 6 "$AB" list --db "$WORK/damaged.db"
says "damaged.db"

finish
