#!/bin/bash
# Help, exit codes of wrong use, and the queries on an empty and a filled database.
. "$(dirname "$0")/common.sh"

expect 0 "$AB" --help
says "doctor"
for command in run selftest list show history compare diff doctor "check model" "check gdn" "check rq" "check attn"; do
    # shellcheck disable=SC2086
    expect 0 "$AB" $command --help
    says "Example"
done
expect 2 "$AB"
expect 2 "$AB" frobnicate
expect 2 "$AB" run no-such-experiment
says "gdn-register"
expect 2 "$AB" run gdn-register --replicates 0
expect 2 "$AB" run
expect 2 "$AB" run --base "$TOYS/libtoy.so" --candidate "$TOYS/libtoy_slow.so"
says "--model"
expect 4 "$AB" run gdn-register --candidate-switch VLLM_CUDA_GDN_DELTA=random --base-switch VLLM_CUDA_GDN_DELTA=ref
says "VLLM_CUDA_GDN_DELTA"
expect 4 "$AB" diff /bin/sh "$TOYS/libtoy.so"
expect 2 "$AB" diff "$WORK/missing.so" "$TOYS/libtoy.so"
says "missing.so"
# Every engine and its baseline differ in the define alone.
for engine in cpu cuda; do
    [ -e "$PREFIX/lib/libkestrel_$engine.so" ] || continue
    expect 0 "$AB" diff "$PREFIX/lib/libkestrel_$engine.so" "$PREFIX/lib/libkestrel_${engine}_gemv_baseline.so"
    says "One place"
    says "VLLM_GEMV_AB_BASELINE"
done

# Nothing stored yet is no failure, and no verdict either.
expect 0 "$AB" list
says "gdn-register"
expect 0 "$AB" history
expect 2 "$AB" show abcd
says "abcd"
expect 0 "$AB" doctor
says "libkestrel_cpu.so"

# A check that fails, one that has nothing to check, and one that asks for two references at once.
FIXTURE="$(dirname "$0")/../data/qwen35/f32-4l"
expect 0 "$AB" check model --engine kestrel_truth --model "$FIXTURE" --expected "$FIXTURE/expected.safetensors"
expect 1 "$AB" check model --model "$FIXTURE" --tolerance 1e-12
says "FAILED"
expect 5 "$AB" check gdn --engine "$TOYS/libtoy.so"
says "NOT CHECKED"
expect 2 "$AB" check model --model "$FIXTURE" --expected "$FIXTURE/expected.safetensors" --reference kestrel_truth

# A stray switch is named wherever a person looks.
VLLM_CUDA_GDN_DELTA=ref expect 0 "$AB" doctor
says "VLLM_CUDA_GDN_DELTA=ref"

# Two sessions; comparing them is refused with both named.
for _ in 1 2; do
    # shellcheck disable=SC2086
    expect_verdict 0 "$AB" run --base "$TOYS/libtoy_slow.so" --candidate "$TOYS/libtoy.so" --model $MODEL $STEADY
done
mapfile -t ids < <("$AB" list --json | grep -o '"uuid": *"[^"]*"' | cut -d'"' -f4)
[ "${#ids[@]}" -ge 2 ] || fail "${#ids[@]} sessions instead of 2"
expect 4 "$AB" compare "${ids[0]}" "${ids[1]}"
says "${ids[0]}"
says "${ids[1]}"
expect 0 "$AB" show "${ids[0]:0:8}" --all-rounds
says "${ids[0]}"
says "test.db"
expect 0 "$AB" show "${ids[0]}" --json
python=$(command -v python3 || true)
[ -z "$python" ] || "$python" -m json.tool <"$WORK/out" >/dev/null || fail "show --json is not JSON"
expect 0 "$AB" history
says "$(printf '%s' "${ids[0]}" | cut -c1-8)"

finish
