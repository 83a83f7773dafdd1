#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetctl top: what several nodes do, as it happens (requirement H8).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

port=$(free_port) || skip "perl cannot find a free port"
need_lnetd a --net 'tcp(127.0.0.1)' --port "$port"
need_lnetd b --net 'tcp(127.0.0.2)' --port "$port" --socket "$dir/b.sock"
need_lnetd c --net 'tcp(127.0.0.3),tcp1(127.0.0.3)' --port "$port" \
	--socket "$dir/c.sock"

# column N LINE_PATTERN: of the first line that matches.
column() {
	awk -v n="$1" -v pattern="$2" '$0 ~ pattern { print $n; exit }' "$dir/out"
}

# ---- command line ----

for wrong in '--interval 0' '--interval x' '--interval -1' '--interval nan' \
	'--count 0' '--rows 1001'; do
	# shellcheck disable=SC2086
	ctl 234 top $wrong
	has err "lnetctl top: ${wrong% *} '${wrong#* }': .* is expected"
done
ctl 234 top b
has err 'unexpected argument: b'
ctl 254 --socket "$dir/nobody" top
has err 'No such file'

# ---- blocks ----

ctl 0 ping 127.0.0.2@tcp 127.0.0.3@tcp
ctl 0 top --interval 0.1 --count 3
silent err
expect "three blocks" test "$(grep -c ' messages alive' "$dir/out")" = 3
expect "empty lines between" test "$(grep -c '^$' "$dir/out")" = 2
has out '^127.0.0.1@tcp +1000 +256/256 '
has out '^127.0.0.2@tcp +1000 +8/8 '
has out '^127.0.0.3@tcp +1000 +8/8 '
expect "no escape sequences" test "$(grep -c "$(printf '\033')" "$dir/out")" = 0

# Rates: while somebody pings, messages go out and come in.
while :; do "$lnetctl" ping 127.0.0.2@tcp >/dev/null 2>&1 || sleep 0.1; done &
pids[pings]=$!
ctl 0 top --interval 1 --count 1
kill "${pids[pings]}"
wait "${pids[pings]}" 2>/dev/null
unset 'pids[pings]'
for i in 5 6; do
	expect "messages a second of the peer" awk -v x="$(column $i \
		'^127.0.0.2@tcp')" 'BEGIN { exit !(x > 0) }'
	expect "messages a second of the interface" awk -v x="$(column $i \
		'^127.0.0.1@tcp')" 'BEGIN { exit !(x > 0) }'
	expect "nothing of another peer" test "$(column $i '^127.0.0.3@tcp')" = 0
done

# Routes: nobody is there who would answer for them.
expect "no route yet" test "$(grep -c '^ROUTE TO' "$dir/out")" = 0
ctl 0 route add --net tcp7 --gateway 127.0.0.2@tcp
ctl 0 route add --net tcp8 --gateway 127.0.0.3@tcp
ctl 0 top --interval 0.1 --count 1
has out '^ROUTE TO +BY +HEALTH +STATE$'
has out '^tcp7 +127.0.0.2@tcp +[0-9]+ +(up|ill|down)$'
ctl 0 top --interval 0.1 --count 1 --rows 1
expect "one route" test "$(grep -cE '^tcp[78] ' "$dir/out")" = 1
has out '^\.\.\. and 1 more$'
ctl 0 route del --net tcp7 --gateway 127.0.0.2@tcp
ctl 0 route del --net tcp8 --gateway 127.0.0.3@tcp

# Ill ones come first; one row, and how many more there are.
ctl 0 set health_gain 1 # they stay so for a while
ctl 0 peer set --nid 127.0.0.3@tcp --health 500
ctl 0 net set --nid 127.0.0.1@tcp --health 900
ctl 0 top --interval 0.1 --count 1 --rows 1
expect "the ill one" test -n "$(column 1 '^127.0.0.3@tcp +[5-9][0-9][0-9] ')"
has out '^127.0.0.1@tcp +9[0-9][0-9] '
expect "one row" test "$(grep -c '^127.0.0.2@tcp' "$dir/out")" = 0
has out '^\.\.\. and [1-9][0-9]* more$'

# ---- its end ----

for signal in INT TERM; do
	: >"$dir/live"
	"$lnetctl" top --interval 0.1 >"$dir/live" 2>"$dir/err" </dev/null &
	pids[top]=$!
	await "$dir/live" 'NID OF A PEER'
	stop_lnetd top $signal
	ran="lnetctl top, ended by $signal"
	silent err
done

# Nobody is there any more whom it could ask.
: >"$dir/live"
"$lnetctl" --timeout 2 --socket "$dir/c.sock" top --interval 0.1 \
	>"$dir/live" 2>"$dir/err" </dev/null &
pids[top]=$!
await "$dir/live" 'NID OF A PEER'
stop_lnetd c
status=0
wait "${pids[top]}" || status=$?
unset 'pids[top]'
expect "its node has ended: exit status $status" test $status != 0
has err "lnetctl: $dir/c.sock: "

# The reader has gone.
checks=$((checks + 1))
"$lnetctl" top --interval 0.1 2>"$dir/err" | head -n 1 >"$dir/out"
has out 'messages alive'
finish
