#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetctl top: what several nodes do, as it happens (requirement H8).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
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
	has err "lnetctl top: $wrong: .* is expected"
done
ctl 234 top b
has err 'unexpected argument: b'
ctl 254 --socket "$dir/nobody" top
has err 'No such file'

# ---- blocks ----

ctl 0 ping --timeout 60 127.0.0.2@tcp 127.0.0.3@tcp
ctl 0 top --interval 0.1 --count 3
silent err
expect "three blocks" test "$(grep -c ' messages alive' "$dir/out")" = 3
expect "empty lines between" test "$(grep -c '^$' "$dir/out")" = 2
has out '^127.0.0.1@tcp +1000 +256/256 '
has out '^127.0.0.2@tcp +1000 +8/8 '
has out '^127.0.0.3@tcp +1000 +8/8 '
expect "no escape sequences" test "$(grep -c "$(printf '\033')" "$dir/out")" = 0

# Rates: while somebody pings, messages go out and come in.
busy='[0-9.]*[1-9][0-9.]*'
while :; do "$lnetctl" ping --timeout 60 127.0.0.2@tcp >/dev/null 2>&1 || sleep 0.1; done &
pids[pings]=$!
ctl_until "^127.0.0.2@tcp( +[^ ]+){3} +$busy +$busy " top --interval 1 --count 1
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

# What is known of a peer that was never spoken to has no credits yet.
ctl 0 peer add --prim_nid 127.0.0.9@tcp
ctl 0 top --interval 0.1 --count 1
has out '^127.0.0.9@tcp +1000 +- +- +0 +0 +0 '
ctl 0 peer del --prim_nid 127.0.0.9@tcp

# Routes: nobody is there who would answer for them. Of their gateways there is as much as of
# other NIDs.
expect "no route yet" test "$(grep -c '^GATEWAY' "$dir/out")" = 0
ctl 0 route add --net tcp7 --gateway 127.0.0.2@tcp
ctl 0 route add --net tcp8 --gateway 127.0.0.3@tcp
ctl 0 top --interval 0.1 --count 1
has out '^GATEWAY +TO +STATE +HEALTH +CREDITS +MIN +SENT/s +RECV/s +WAITING +WAIT B '
has out '^127.0.0.2@tcp +tcp7 +(up|ill|down) +[0-9]+ +-?[0-9]+/8 +-?[0-9]+ '
ctl 0 top --interval 0.1 --count 1 --rows 1
expect "one route" test "$(grep -cE '@tcp +tcp[78] ' "$dir/out")" = 1
has out '^\.\.\. and 1 more$'
while :; do "$lnetctl" ping --timeout 60 127.0.0.2@tcp >/dev/null 2>&1 || sleep 0.1; done &
pids[pings]=$!
ctl_until "^127.0.0.2@tcp +tcp7( +[^ ]+){4} +$busy +$busy " top --interval 1 --count 1
kill "${pids[pings]}"
wait "${pids[pings]}" 2>/dev/null
unset 'pids[pings]'
for i in 7 8; do
	expect "messages a second of the gateway" awk -v x="$(column $i \
		'^127.0.0.2@tcp +tcp7')" 'BEGIN { exit !(x > 0) }'
done
ctl 0 route del --net tcp7 --gateway 127.0.0.2@tcp
ctl 0 route del --net tcp8 --gateway 127.0.0.3@tcp

# Routers: their buffers, and who may have how many more.
expect "no buffers yet" test "$(grep -cE '^BUFFERS|ROUTER' "$dir/out")" = 0
ctl 0 set routing 1
ctl 0 set small_buffers 4000
ctl 0 top --interval 0.1 --count 1
has out '^BUFFERS +FREE +OF +MIN +WAITING$'
has out '^tiny +2048 +2048 +2048 +0$'
has out '^small +4000 +4000 +4000 +0$'
has out '^large +1024 +1024 +1024 +0$'
has out '^NID OF A PEER .* ROUTER$'
has out '^127.0.0.2@tcp +1000 .* [1-9][0-9]*$'
ctl 0 set routing 0

# ---- width ----

longest() {
	awk 'length > n { n = length } END { print n + 0 }' "$dir/out"
}
ctl 0 top --interval 0.1 --count 1
expect "all columns" grep -qE '^INTERFACE .*MIN .*RECV B/s .*RESEND/s$' "$dir/out"
ctl 0 route add --net tcp7 --gateway 127.0.0.2@tcp
ctl 0 set routing 1
export COLUMNS
for COLUMNS in 200 80 60 40; do
	ctl 0 top --interval 0.1 --count 1
	expect "$(longest) of $COLUMNS columns" test "$(longest)" -le $COLUMNS
	for title in INTERFACE 'NID OF A PEER'; do
		has out "^$title .*HEALTH .*WAITING"
	done
	has out '^GATEWAY .*STATE'
	has out '[0-9] NIDs of peers$'
	seen=$(sed -nE '/^INTERFACE/s/.*(CREDITS).*(SENT\/s).*(RECV\/s).*(WAITING).*/\1\2\3\4/p' \
		"$dir/out")
	case $COLUMNS in
	200) has out '^INTERFACE .*RESEND/s$' ;;
	80) expect "what matters" test "$seen" = CREDITSSENT/sRECV/sWAITING ;;
	esac
done
unset COLUMNS
ctl 0 set routing 0
ctl 0 route del --net tcp7 --gateway 127.0.0.2@tcp
if command -v script >/dev/null && script -qec true /dev/null </dev/null >"$dir/out" 2>&1; then
	ran="lnetctl top, on a terminal of 70 columns"
	TERM=dumb script -qec "stty cols 70
		'$lnetctl' top --interval 0.1 --count 1" /dev/null </dev/null |
		tr -d '\r' >"$dir/out"
	has out '^INTERFACE '
	expect "$ran: $(longest)" test "$(longest)" -le 70
fi

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
