#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The completions know what the programs know: commands, sub-commands, options.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
completion=${srcdir:-.}/tools/completion

for name in lnetctl lnetd lst o2ibcalc rpcping rpcserve ulnet-keys ulrpc; do
	run 0 bash -n "$completion/$name"
	. "$completion/$name" || complain "$name: cannot be read"
done
compopt() { :; } # only there while bash completes

# reply FUNCTION WORD...: what is offered for the last word, sorted.
reply() {
	COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
	"$1"
	[ ${#COMPREPLY[@]} = 0 ] ||
		printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort
}

# The long options that a help names.
options_of() { # FILE
	grep -oE '^ +(-., )?--[a-z0-9_-]+' "$1" | grep -oE -- '--.*' |
		LC_ALL=C sort
}

words() {
	reply "$@" >"$dir/offered"
	ran="completion of ${*:2}"
	checks=$((checks + 1))
	diff -u "$dir/known" "$dir/offered" >"$dir/diff" || {
		complain "$ran"
		sed 's/^/| /' "$dir/diff"
	}
}

# ---- lnetctl ----

# "--help" is everywhere, and in no table.
# In columns there.
names() {
	tr -s ' ' '\n' <"$dir/out"
}

ctl 0 --list-commands
(names && printf -- '--%s\n' help list-commands socket timeout version) |
	LC_ALL=C sort >"$dir/known"
words _lnetctl lnetctl ""
words _lnetctl lnetctl --socket=x ""
words _lnetctl lnetctl --socket x ""

ctl 0 --list-commands
commands=$(names)
for command in $commands; do
	[ "$command" != set ] || continue
	ctl 0 "$command" --list-commands
	subs=$(names)
	if [ -n "$subs" ]; then
		(echo "$subs" && echo --help) | LC_ALL=C sort >"$dir/known"
		words _lnetctl lnetctl "$command" ""
	fi
	for sub in ${subs:-""}; do
		ctl 0 "$command" $sub --help
		(options_of "$dir/out"; echo --help) |
			LC_ALL=C sort >"$dir/known"
		words _lnetctl lnetctl "$command" $sub --
	done
done
ctl 0 set --list-commands
(names && echo --help) | LC_ALL=C sort >"$dir/known"
words _lnetctl lnetctl set ""
printf '%s\n' --net >"$dir/known"
words _lnetctl lnetctl --socket x net add --ne
words _lnetctl lnetctl --timeout 5 --socket x net add --ne
printf '%s\n' lo >"$dir/known"
words _lnetctl lnetctl net add --net tcp --if lo

# ---- lnetd ----

run 0 "$lnetd" --help
options_of "$dir/out" >"$dir/known"
words _lnetd lnetd --
printf '%s\n' all none secure >"$dir/known"
words _lnetd lnetd --accept ""
printf '%s\n' debug err info warn >"$dir/known"
words _lnetd lnetd --log ""

# ---- lst ----

run 0 "$lst" --help
options_of "$dir/out" >"$dir/known"
words _lst lst --
sed -n '/^Commands:/,/^$/s/^  \([a-z_]*\).*/\1/p' "$dir/out" | sed '/^$/d' |
	LC_ALL=C sort >"$dir/known"
words _lst lst ""
words _lst lst --json ""
printf '%s\n' --delay --loop --server --test --timeout >"$dir/known"
words _lst lst --json query ""
# A ping is a test, too.
printf '%s\n' --from >"$dir/known"
words _lst lst add_test ping --fr

# ---- o2ibcalc ----

run 0 tools/bin/o2ibcalc --help
options_of "$dir/out" >"$dir/known"
words _o2ibcalc o2ibcalc --
run 0 tools/bin/o2ibcalc --yaml
sed -n '/^b:/q; s/^    \([a-z_]*\):.*/\1=/p' "$dir/out" | LC_ALL=C sort >"$dir/known"
words _o2ibcalc o2ibcalc --a ""
words _o2ibcalc o2ibcalc --both ""
words _o2ibcalc o2ibcalc --what-if ""
printf '%s\n' ntx=8,concurrent_sends=8,max_cqe= ntx=8,concurrent_sends=8,max_qp_wr= \
	ntx=8,concurrent_sends=8,max_writes= >"$dir/known"
words _o2ibcalc o2ibcalc -b ntx=8,concurrent_sends=8,max_
printf '%s\n' b.ncpts= b.ntx= >"$dir/known"
words _o2ibcalc o2ibcalc --what-if b.n
printf '%s\n' A B >"$dir/known"
words _o2ibcalc o2ibcalc --initiator ""

# ---- rpcping, rpcserve ----

for name in rpcping rpcserve; do
	run 0 "tools/bin/$name" --help
	options_of "$dir/out" >"$dir/known"
	words "_$name" "$name" --
	run 0 tools/bin/rpcserve --list
	grep -oE '^[^ :]+' "$dir/out" | LC_ALL=C sort >"$dir/known"
	words "_$name" "$name" --service ""
	printf '%s\n' all none secure >"$dir/known"
	words "_$name" "$name" --accept ""
done
run 0 tools/bin/rpcserve --list
sed -n 's/^  \([^ ]*\).*/\1/p' "$dir/out" | LC_ALL=C sort >"$dir/known"
words _rpcping rpcping --method ""

# ---- ulrpc ----

run 0 tools/bin/ulrpc --help
options_of "$dir/out" >"$dir/known"
words _ulrpc ulrpc --
printf '%s\n' call describe health list >"$dir/known"
reply _ulrpc ulrpc "" | grep -v '^--' >"$dir/offered"
expect "completion of ulrpc" cmp -s "$dir/known" "$dir/offered"

# ---- ulnet-keys, which is not there without OpenSSL ----

[ -x tools/bin/ulnet-keys ] || finish
run 0 tools/bin/ulnet-keys --help
options_of "$dir/out" >"$dir/known"
words _ulnet_keys ulnet-keys --
sed -n '/^Commands:/,$s/^  \([a-z]*\) .*/\1/p' "$dir/out" | LC_ALL=C sort >"$dir/known"
words _ulnet_keys ulnet-keys ""
words _ulnet_keys ulnet-keys --days 3 ""
mkdir "$dir/keys" && touch "$dir"/keys/{authority,a,b}.{crt,key}
printf '%s\n' a b >"$dir/known"
words _ulnet_keys ulnet-keys --dir "$dir/keys" check ""

finish
