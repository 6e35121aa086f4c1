#!/bin/bash
# What the service says about engines whose only difference is known.
. "$(dirname "$0")/common.sh"

# A planted slowdown to half the speed.
# shellcheck disable=SC2086
expect_verdict 1 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL $STEADY
says "SLOWER"
says "TOY_EXTRA_PERCENT"

# The same pair the other way round.
# shellcheck disable=SC2086
expect_verdict 0 "$AB" run --base "$TOYS/libtoy_slow.so" --candidate "$TOYS/libtoy.so" --model $MODEL $STEADY
says "FASTER"

# A faster or slower engine with other output is neither.
# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_wrong.so" --model $MODEL $QUICK
says "INVALID"
says "OUTPUT"

# shellcheck disable=SC2086
expect 5 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_not_finite.so" --model $MODEL $QUICK
says "not finite"

# Nothing differs: no measurement, no session.
expect 0 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy.so" --model $MODEL
says "Identical"
# Unless identity is the point.
# shellcheck disable=SC2086
expect_verdict 0 "$AB" run --aa --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy.so" --model $MODEL $STEADY
says "SAME"

# Two places: refused, both named, nothing stored.
before=$("$AB" list --json | grep -c '"uuid"')
expect 4 "$AB" run --base "$TOYS/libtoy_slow.so" --candidate "$TOYS/libtoy_wrong.so" --model $MODEL
says "TOY_EXTRA_PERCENT"
says "TOY_WRONG_LOGIT"
[ "$("$AB" list --json | grep -c '"uuid"')" -eq "$before" ] || fail "a refused run left a session"
expect 4 "$AB" diff "$TOYS/libtoy_slow.so" "$TOYS/libtoy_wrong.so"
says "TOY_WRONG_LOGIT"

# A define and a switch are two places too.
expect 4 "$AB" diff "$TOYS/libtoy.so" "$TOYS/libtoy_slow.so" --candidate-switch SWITCH_Q=1
says "TOY_EXTRA_PERCENT"
says "SWITCH_Q"

# A plan is printed with its looks, and nothing is stored.
before=$("$AB" list --json | grep -c '"uuid"')
expect 0 "$AB" run --plan --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL --tokens 8 --margin 40
says "at most 30"
says "after 6 (99.9995 %), 12"
[ "$("$AB" list --json | grep -c '"uuid"')" -eq "$before" ] || fail "run --plan left a session"

# A difference this large ends a session at its first look, of the five that the default policy plans.
expect_verdict 1 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so" --model $MODEL --tokens 8 --super-rounds 4 --margin 40
says "of at most 30 replicates"

# The ledger counts what was measured, and sessions whose truth is known by their answers.
expect_verdict 0 "$AB" selftest --aa --engine "$TOYS/libtoy.so" --sessions 1 --replicates 6 --tokens 8 --super-rounds 8 --margin 40
says "SAME"
says "0 of 1, 0.0 % [0.0 %, 97.5 %] of identical builds called FASTER or SLOWER"
# Seed 3 draws a planted slowdown first.
expect_verdict 0 "$AB" selftest --planted 100 --calibrate-seconds 0.1 --sessions 1 --seed 3 --replicates 6 --tokens 4 --super-rounds 2 --margin 40
says "of planted differences found"
says "truth 0."
expect 0 "$AB" selftest --ledger
says "toy"
says "kestrel_planted"
expect 2 "$AB" selftest
expect 2 "$AB" selftest --aa --planted 1

finish
