#!/bin/bash
# Kept weights: the same session with and without, and what happens when the cache or the model is no longer what it was.
. "$(dirname "$0")/common.sh"
export KESTREL_AB_CACHE=$WORK/cache
export KESTREL_AB_CACHE_MINIMUM=1
cp "$PREFIX/share/kestrel-ab/models/mini-64l.toml" "$WORK/model.toml"
SESSION="run gdn-register --model $WORK/model.toml --replicates 2 --super-rounds 1 --tokens 4 --seed 7"

# session WORDS... : runs one to its seal; $WORK/shown is what was stored. What it says of speed, even that a busy machine cannot say
# anything, is not the question here.
session() {
    # shellcheck disable=SC2086
    "$AB" $SESSION "$@" >"$WORK/out" 2>&1
    case $? in 0 | 1 | 3 | 5) ;; *) complain_unless 0 $? $SESSION "$@" ;; esac
    says "outputs bit-identical"
    "$AB" show "$("$AB" list --json | grep -o '"uuid": *"[^"]*"' | cut -d'"' -f4 | head -n 1)" --json >"$WORK/shown"
}
# of FIELD: its values in the session, each once.
of() { grep -o "\"$1\": *\"[^\"]*\"" "$WORK/shown" | sort -u; }
# counted NUMBER TEXT: so many events of the session say it.
counted() {
    local found
    found=$(grep -c -- "$2" "$WORK/shown")
    [ "$found" -eq "$1" ] || {
        fail "'$2' is said $found times instead of $1"
        grep -B1 -A1 '"detail"' "$WORK/shown" | sed 's/^/    /'
    }
}

sleep 2.1 # the model's file is not trusted before

session --no-weight-cache
counted 0 "the cache"
[ ! -e "$KESTREL_AB_CACHE" ] || fail "--no-weight-cache made a cache"
outputs=$(of output_digest)
weights=$(of weights_digest)
layout=$(of layout_id)
[ -n "$outputs" ] && [ -n "$weights" ] || fail "a session without outputs or weights"

same_as_without() {
    [ "$(of output_digest)" = "$outputs" ] || fail "other outputs: $1"
    [ "$(of weights_digest)" = "$weights" ] || fail "another digest: $1"
    [ "$(of layout_id)" = "$layout" ] || fail "another layout: $1"
}

session
counted 1 "weights kept in the cache"
counted 2 "weights of replicate .: from the cache"
counted 0 "weights of the inspection"
same_as_without "first session with a cache"

session
counted 1 "weights of the inspection: from the cache"
counted 2 "weights of replicate .: from the cache"
counted 0 "weights kept in the cache"
same_as_without "second session with a cache"

session --verify-weights
counted 0 "weights of the inspection"
counted 2 "weights of replicate .: from the cache"
same_as_without "--verify-weights"

expect 0 sh -c '"$0" doctor || true' "$AB"
says "$KESTREL_AB_CACHE, 1 blocks"

# A flipped bit: said, loaded, replaced, and gone the next time.
block=$(ls "$KESTREL_AB_CACHE"/*.weights)
damage() {
    size=$(stat -c %s "$block")
    printf '\125' | dd of="$block" bs=1 seek=$((size - 1000)) conv=notrunc 2>/dev/null
    printf '\252' | dd of="$block" bs=1 seek=$((size - 999)) conv=notrunc 2>/dev/null
}
damage
session
says "no weight cache"
says "are damaged"
counted 0 "weights of the inspection"
same_as_without "damaged block"
session
counted 1 "weights of the inspection: from the cache"

# Cut off, replaced by a folder, or a folder that others can write in.
truncate -s 5000 "$block"
session
says "no weight cache"
counted 1 "weights kept in the cache"
same_as_without "block cut off"
rm "$block" && mkdir "$block"
session
says "is a folder"
counted 0 "from the cache"
same_as_without "block replaced by a folder"
rmdir "$block"
chmod a+w "$KESTREL_AB_CACHE"
session
says "chmod go-w"
same_as_without "writable folder"
chmod go-w "$KESTREL_AB_CACHE"
# Nor a file where the folder should be, nor a limit that it does not fit.
touch "$WORK/file"
KESTREL_AB_CACHE=$WORK/file session
says "no weight cache"
same_as_without "a file for a folder"
KESTREL_AB_CACHE=$WORK/small KESTREL_AB_CACHE_LIMIT=1000 session
says "KESTREL_AB_CACHE_LIMIT"
same_as_without "a tiny limit"
KESTREL_AB_CACHE_MINIMUM=1T session
counted 0 "the cache"
expect 2 env KESTREL_AB_CACHE_LIMIT=lots "$AB" run gdn-register
says "KESTREL_AB_CACHE_LIMIT"

# Another model under the same name, size and modification time: never the old weights.
session
session
counted 1 "weights of the inspection: from the cache"
before=$(stat -c '%y %s' "$WORK/model.toml") # of what a careless look would compare
touch -r "$WORK/model.toml" "$WORK/times"
sed -i '0,/^seed = .*/s//seed = 9/' "$WORK/model.toml"
touch -r "$WORK/times" "$WORK/model.toml"
[ "$(stat -c '%y %s' "$WORK/model.toml")" = "$before" ] || fail "the test changed more than it meant to"
session
counted 0 "weights of the inspection"
[ "$(of weights_digest)" != "$weights" ] || fail "a changed model kept its old weights"
with=$(of output_digest)
[ "$with" != "$outputs" ] || fail "a changed model kept its old outputs"
session --no-weight-cache
[ "$(of output_digest)" = "$with" ] || fail "a changed model decodes otherwise with a cache"

finish
