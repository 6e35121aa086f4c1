#!/bin/bash
# Checks of engines with one mistake each: they exit 1 and say which operator is wrong, at which shapes, and how many elements differ.
. "$(dirname "$0")/common.sh"
FIXTURE="$(dirname "$0")/../data/qwen35/f32-4l"

# finds CHECK ENGINE OPERATOR LINES... : the check fails, in rows of this operator and output alone; some rows begin as LINES say.
finds() {
    local check=$1 engine=$2 operator=$3 rows line
    shift 3
    expect 1 "$AB" check "$check" --engine "$TOYS/lib$engine.so"
    says "check $check: FAILED"
    says "$engine"
    rows=$(grep -v '^check' "$WORK/out" | grep 'FAILED$')
    [ -n "$rows" ] || fail "check $check names no operator"
    echo "$rows" | grep -vqE "^ *$operator " && fail "check $check blames something else: $(echo "$rows" | grep -vE "^ *$operator ")"
    for line in "$@"; do
        echo "$rows" | grep -qE "^ *$line " || fail "check $check has no row '$line' among: $rows"
    done
}

# Every element of the outputs differs; what the operator gets right beside them is no failure.
finds gdn wrong_gdn gdn_delta "gdn_delta +default +48 heads over 16, 128 x 128 +o +6144 +6144" "gdn_delta +ref +48 heads over 16, 128 x 128 +o +6144 +6144"
grep -E "^ *gdn_delta .* S' " "$WORK/out" | grep -q FAILED && fail "the state is right, and was called wrong"
finds rq wrong_rq q_gemv "q_gemv +q4_0 +64 x 160 +y +64 +64" "q_gemv +q4_0 +33 x 640 +y +33 +33"
grep -E "^ *q_gemv +(q4_1|q8_0|q6_k|f16|bf16|f32) " "$WORK/out" | grep -q FAILED && fail "types other than q4_0 were called wrong"
finds attn wrong_attention attention "attention +default +100 positions, 24 heads over 4 of 256 +out +6144 +6144"

# The same engines' other operators are right.
expect 0 "$AB" check attn --engine "$TOYS/libwrong_gdn.so"
expect 0 "$AB" check gdn --engine "$TOYS/libwrong_rq.so"

# A decoder that puts right operators together wrongly: only the whole model shows it, against another implementation's logits and against
# the truth.
for check in gdn rq attn; do expect 0 "$AB" check $check --engine "$TOYS/libwrong_decoder.so"; done
expect 1 "$AB" check model --engine "$TOYS/libwrong_decoder.so" --model "$FIXTURE" --expected "$FIXTURE/expected.safetensors"
says "check model: FAILED"
says "wrong_decoder"
expect 1 "$AB" check model --engine "$TOYS/libwrong_decoder.so" --model "$FIXTURE"
says "check model: FAILED"
# The first position is turned by no angle, so it is right, and the table of positions shows where it begins.
grep -qE "^ *0 +[0-9.]+e-0[67] " "$WORK/out" || fail "the first position is not right: $(grep -E '^ *0 ' "$WORK/out")"

finish
