#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetd: beginning, end, and what may go wrong in between. All of it without a
# network: a node has 0@lo in any case.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
sock=$ULNET_SOCKET

# What a daemon must not leave behind.
nothing_left() {
	expect "$1: socket is left" test ! -e "$sock"
	expect "$1: pid file is left" test ! -e "$dir/pid"
}

# ---- beginning and end ----

need_lnetd a --pidfile "$dir/pid"
ran="ready line"
echo "$ready" >"$dir/out"
has out "^lnetd: ready: no network yet, socket $sock\$"
expect "pid file" test "$(cat "$dir/pid")" = "${pids[a]}"
expect "mode of the socket" test "$(stat -c %a "$sock")" = 600
ctl 0 net show
has out "net type: lo"
stop_lnetd a TERM
nothing_left SIGTERM

need_lnetd a --pidfile "$dir/pid" --cpts 4
ctl 0 net show -v
has out '^            CPT: "\[0,1,2,3\]"$'
stop_lnetd a INT
nothing_left SIGINT

# The lower number is taken first.
need_lnetd a
kill -HUP "${pids[a]}"
stop_lnetd a
expect "SIGHUP is noted" grep -q "SIGHUP is ignored" "$dir/a.err"

# The level changes while it runs, of the library's lines and of lnetd's own.
need_lnetd a
ctl 0 set log info
ctl 0 set retry_count 3
ctl 0 global show
has out '^    log: info$'
ctl 0 set log err
ctl 0 set retry_count 2
ctl 195 set log inof
has err 'err, warn, info or debug is expected'
ctl 0 export --backup
expect "the level is exported" test -z "$(grep 'log:' "$dir/out")"
printf 'ulnet: {log: info}\n' >"$dir/level"
ctl 0 import "$dir/level"
printf 'ulnet: {log: loud}\n' >"$dir/level"
ctl 234 import "$dir/level"
has err 'log: err, warn, info or debug is expected'
# One subsystem alone, by each of the doors.
ctl 0 set log warn,route=debug
ctl 0 global show
has out '^    log: warn,route=debug$'
ctl 0 set log config=info
ctl 0 set retry_count 1
ctl 0 global show
has out '^    log: warn,config=info,route=debug$'
ctl 0 set log err
printf 'ulnet: {log: "warn,rpc=info"}\n' >"$dir/level"
ctl 0 import "$dir/level"
ctl 0 global show
has out '^    log: warn,rpc=info$'
ctl 195 set log rote=debug
has err "configure log: 'rote' is no subsystem: there are config, .*, route, rpc, "
printf 'ulnet: {log: rote=debug}\n' >"$dir/level"
ctl 234 import "$dir/level"
has err "log: 'rote' is no subsystem: there are config, .*, route, rpc, "
# What fails later leaves the levels as they were.
printf 'ulnet: {log: debug}\nglobal: {retry_count: 5, transaction_timeout: 2}\n' >"$dir/level"
ctl 234 import "$dir/level"
ctl 0 global show
has out '^    log: warn,rpc=info$'
ctl 0 set log info
stop_lnetd a
ran="lnetd whose level changed"
expect "$ran: info" grep -q "^info: config: retry_count: 3" "$dir/a.err"
expect "$ran: config" grep -q "^info: config: retry_count: 1" "$dir/a.err"
expect "$ran: err" test -z "$(grep "retry_count: 2" "$dir/a.err")"
expect "$ran: info again" grep -q "Terminated: ending" "$dir/a.err"

# The environment's levels, unless the command line has some.
export ULNET_LOG=err,route=debug
need_lnetd a
ctl 0 global show
has out '^    log: err,route=debug$'
stop_lnetd a
need_lnetd a --log info,rpc=err
ctl 0 global show
has out '^    log: info,rpc=err$'
stop_lnetd a
ULNET_LOG=rote=debug
run 1 "$lnetd" --foreground
has err "the configuration is refused: ULNET_LOG: 'rote' is no subsystem: there are config, "
unset ULNET_LOG

# Lines with the time and the node, unless they go to the journal of systemd.
free_port port || skip "perl cannot find a free port"
export ULNET_LOG_STAMP=1
need_lnetd a --log info --net "tcp(127.0.0.1)" --port "$port"
ctl 0 set retry_count 3
stop_lnetd a
stamp='^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z'
ran="lines with stamps"
expect "$ran: config" grep -qE \
	"$stamp 127\.0\.0\.1@tcp info: config: retry_count: 3" "$dir/a.err"
expect "$ran: lnetd" grep -qE \
	"$stamp 127\.0\.0\.1@tcp lnetd: Terminated: ending" "$dir/a.err"
expect "$ran: all of them" test -z "$(grep -vE "$stamp " "$dir/a.err")"
: >"$dir/a.err"
JOURNAL_STREAM=$(stat -c %d:%i "$dir/a.err")
export JOURNAL_STREAM
need_lnetd a --log info
ctl 0 set retry_count 3
stop_lnetd a
ran="lines for the journal"
expect "$ran" grep -q "^info: config: retry_count: 3" "$dir/a.err"
export JOURNAL_STREAM=1:1
need_lnetd a --log info
ctl 0 set retry_count 3
stop_lnetd a
ran="lines that are not for the journal"
expect "$ran" grep -qE "$stamp - info: config: retry" "$dir/a.err"
unset ULNET_LOG_STAMP JOURNAL_STREAM

need_lnetd a --log info
stop_lnetd a
expect "the end is noted" grep -q "Terminated: ending" "$dir/a.err"

# A node that cannot end by itself, because its configuration never comes, ends
# all the same.
mkfifo "$dir/never"
"$lnetd" --foreground --pidfile "$dir/pid" --config "$dir/never" \
	>/dev/null 2>"$dir/never.err" </dev/null &
pids[never]=$!
await "$dir/pid" .
kill -TERM "${pids[never]}"
ran="lnetd with a configuration that never comes"
wait "${pids[never]}"
expect "$ran: exit status" test $? = 1
unset "pids[never]"
expect "$ran: says so" grep -q "ends by force" "$dir/never.err"
expect "$ran: pid file is left" test ! -e "$dir/pid"

# ---- limits, and ports ----

# Whatever there may be is used: a low soft limit is raised to the hard one.
soft=$(ulimit -Sn)
ulimit -Sn 200
need_lnetd a
ulimit -Sn "$soft"
grep '^Max open files' "/proc/${pids[a]}/limits" >"$dir/out"
ran="limits of lnetd"
has out "^Max open files +$(ulimit -Hn) +$(ulimit -Hn) "
stop_lnetd a

# Only a port that others do not have is worth a word.
need_lnetd a --port 19880
echo "$ready" >"$dir/out"
ran="ready line with a port"
has out "^lnetd: ready: no network yet, port 19880 \\(kernel nodes use 988\\), socket $sock\$"
stop_lnetd a
need_lnetd a --port 988
echo "$ready" >"$dir/out"
ran="ready line with the usual port"
has out "^lnetd: ready: no network yet, socket $sock\$"
stop_lnetd a

# ---- one path, two daemons ----

need_lnetd a --pidfile "$dir/pid"
run 1 "$lnetd" --foreground
has err "^lnetd: socket $sock: Address already in use: another node"
silent out
ctl 0 net show
run 1 "$lnetd" --foreground --socket "$dir/other" --pidfile "$dir/pid"
has err "^lnetd: --pidfile $dir/pid: a running process has it"
expect "the pid file stays" test "$(cat "$dir/pid")" = "${pids[a]}"
need_lnetd b --socket "$dir/other"
ctl 0 --socket "$dir/other" net show
stop_lnetd b
expect "the other's socket" test ! -e "$dir/other"

# What a killed one leaves is no obstacle.
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null
unset 'pids[a]'
expect "a socket is left" test -S "$sock"
ctl 145 net show
has err "lnetctl: $sock: Connection refused: .*lnetd.*--socket"
need_lnetd a --pidfile "$dir/pid"
expect "pid file is taken over" test "$(cat "$dir/pid")" = "${pids[a]}"
ctl 0 net show
stop_lnetd a
nothing_left "taken over"
ctl 254 net show
has err "lnetctl: $sock: No such file or directory: .*lnetd.*--socket"

# ---- in the background ----

exec {inherited}>"$dir/inherited"
run 0 "$lnetd" --pidfile "$dir/pid"
exec {inherited}>&-
has out "^lnetd: ready: no network yet, socket $sock\$"
silent err
exec {lock}<"$dir/pid"
ctl 0 net show
expect "no file of ours" test -z "$(find "/proc/$(cat "$dir/pid")/fd" \
	-lname "$dir/inherited")"
kill "$(cat "$dir/pid")"
expect "it ends" flock --timeout 60 "$lock" # it has it while it lives
nothing_left background
run 1 "$lnetd" --config "$dir/none" --pidfile "$dir/pid"
has err "^lnetd: $dir/none: No such file or directory"
silent out
nothing_left "failed in the background"
cd "$dir" || exit # paths are the caller's
printf 'net:\n' >relative.conf
run 0 "$lnetd" --pidfile pid --socket lnetd.sock --config relative.conf
exec {lock}<"$dir/pid"
ctl 0 net show
kill "$(cat "$dir/pid")"
expect "it ends" flock --timeout 60 "$lock"
nothing_left "relative paths"
cd "$OLDPWD" || exit

# ---- a service manager ----

# Prints the datagrams it gets, a line each, until the third.
manager='use IO::Socket::UNIX; $| = 1;
	my $s = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0])
		or die; print "bound\n";
	while (defined $s->recv(my $m, 999)) { print $m; last if $m =~ /STOP/; }'
told() { # PROGRAM [ARGUMENT...]
	coproc MANAGER { perl -e "$manager" "$dir/notify"; }
	manager_pid=$MANAGER_PID # bash forgets both when the other ends
	exec {manager_out}<&"${MANAGER[0]}"
	read -r line <&"$manager_out" # bound
	NOTIFY_SOCKET=$dir/notify "$@" >"$dir/out" 2>"$dir/err" &
	pids[a]=$!
	read -t 60 -r line <&"$manager_out"
	expect "$1: READY=1, not '$line'" test "$line" = READY=1
	ctl 0 net show
	kill "${pids[a]}"
	read -t 60 -r line <&"$manager_out"
	expect "$1: STOPPING=1, not '$line'" test "$line" = STOPPING=1
	wait "${pids[a]}"
	expect "$1: exit status as a service" test $? = 0
	unset 'pids[a]'
	wait "$manager_pid"
	exec {manager_out}<&-
	rm -f "$dir/notify"
}
told "$lnetd"
told "$rpcserve" --socket "$ULNET_SOCKET"

# ---- the command line ----

usage() { # PATTERN ARGUMENT...
	run 2 "$lnetd" --foreground "${@:2}"
	has err "$1"
	silent out
	nothing_left "$ran"
}

run 0 "$lnetd" --help
has out "usage: lnetd"
run 0 "$lnetd" --version
has out "^lnetd \(ulnet\) [0-9]"
usage "--port 0: a number from 1 to 65535" --port 0
usage "--port 65536: a number" --port 65536
usage "--port 1x: a number" --port 1x
usage "--port '': a number" --port ""
usage "--cpts 17: a number from 1 to 16" --cpts 17
usage "--cpts -1: a number" --cpts -1
usage "--accept maybe: secure, all or none" --accept maybe
usage "--log loud: err, warn, info or debug" --log loud
usage "--log warn,rote=info: 'rote' is no subsystem: there are config, " --log warn,rote=info
usage "option '--lst' requires an argument" --lst
usage "--lst 10.0.0.1: at character 1: .*missing; all, or NIDs" --lst 10.0.0.1
usage "--lst-rpc-timeout 0: a number from 1" --lst all --lst-rpc-timeout 0
usage "--lst-session-timeout: --lst is missing" --lst-session-timeout 9
usage "--group no such group: there is no" --group "no such group"
usage "--socket '': a path" --socket ""
usage "unrecognized option '--nonsense'" --nonsense
usage "requires an argument" --port
usage "unexpected argument: x" x

# ---- configuration ----

# fails PATTERN ARGUMENT...: an error, and nothing is left.
fails() {
	run 1 "$lnetd" --foreground --pidfile "$dir/pid" "${@:2}"
	has err "$1"
	silent out
	nothing_left "$ran"
}

conf=$dir/lnet.conf
need_lnetd a --config /dev/null
stop_lnetd a
printf 'global:\n    retry_count: 3\n' >"$conf"
need_lnetd a --config "$conf"
ctl 0 global show
has out "retry_count: 3"
stop_lnetd a
fails "^lnetd: $dir/none: No such file" --config "$dir/none"
fails "^lnetd: $dir: Is a directory" --config "$dir"
printf 'net: [\n' >"$conf"
fails "^lnetd: $conf: the configuration is wrong:" --config "$conf"
has err "line 2"
printf '# one\nnonsense: 1\n' >"$conf"
fails "^lnetd: $conf: the configuration is wrong:" --config "$conf"
has err "line 2.*nonsense"
printf 'global:\n    retry_count: many\n' >"$conf"
fails "^lnetd: $conf: the configuration is wrong:" --config "$conf"
has err "line 2.*retry_count"
printf 'net:\n    - net type: carrier\n' >"$conf"
fails "^lnetd: $conf: the configuration is wrong:" --config "$conf"
has err "line 2.*carrier"
printf 'global:\n    retry_count: \xff\n' >"$conf"
fails "^lnetd: $conf: not text: not UTF-8" --config "$conf"
printf 'global: \0' >"$conf"
fails "^lnetd: $conf: not text: a byte of 0 at offset 8" --config "$conf"
head -c 5000000 /dev/zero | tr '\0' '#' >"$conf"
fails "^lnetd: $conf: longer than 4194304 bytes" --config "$conf"
fails "^lnetd: --net carrier\(eth0\): at character 1: " --net "carrier(eth0)"
fails "^lnetd: --net 127.0.0.50@tcp: at character 1: no such net; .*'tcp\(127.0.0.50\)'$" \
	--net 127.0.0.50@tcp
fails "^lnetd: --net tcp\(: at character [0-9]+: " --net "tcp("
usage "--net '': a net is expected" --net ""
fails "^lnetd: --net tcp\(no-such-if\): " --net "tcp(no-such-if)"
usage "--ip2nets '': a text is expected" --ip2nets ""
fails "^lnetd: --ip2nets tcp1: at character 5: a range of addresses" --ip2nets tcp1
fails "^lnetd: --ip2nets tcp 127.9.9.9: at character 14: no rule matches" \
	--ip2nets "tcp 127.9.9.9"
fails "^lnetd: --ip2nets tcp1.*127.0.0.1: at character 45: no such net: tpc2" \
	--ip2nets "tcp1(lo) 127.9.9.9; tcp2(lo) 127.0.0.[1-9]; tpc2 127.0.0.1"
usage "--routes '': a text is expected" --routes ""
fails "^lnetd: --routes tcp2: at character 5: " --routes tcp2

# Texts for a whole cluster, of which a node takes what is for it: rules, by the
# addresses that the host has; and routes, but for those to its own networks and
# by gateways on others. One route is by this node itself: it is a router.
run 0 "$lnetd" --ip2nets "elan0 127.7.*.*; tcp1 127.9.9.9
	tcp2 127.0.0.1 # here; tcp2(lo) 127.*.*.*" \
	--routes "tcp3 127.0.0.[8-9]@tcp2:1; tcp2 127.0.0.1@tcp2 # me;
	tcp4 127.0.0.8@tcp7; tcp2 127.0.0.8@tcp3; elan 127.0.0.8@tcp2;
	tcp3 127.0.0.8@tcp2" --pidfile "$dir/pid"
has err "^lnetd: --routes: 2 of 5 routes are not for this node.*\(tcp4 by 127.0.0.8@tcp7: the gateway is on no network of this node\)"
has err "^warning: config: route to elan is passed over"
exec {lock}<"$dir/pid"
ctl 0 net show
has out "127.0.0.1@tcp2"
expect "one network for this host" \
	test "$(grep -c "nid: .*@tcp" "$dir/out")" = 1
ctl 0 route show --verbose
expect "two routes" test "$(grep -c 'gateway:' "$dir/out")" = 2
expect "through them" \
	test "$(grep -c 'gateway: 127.0.0.[89]@tcp2' "$dir/out")" = 2
expect "their priority" test "$(grep -c 'priority: 1' "$dir/out")" = 2
ctl 0 routing show
has out "enable: 1"
kill "$(cat "$dir/pid")"
expect "it ends" flock --timeout 60 "$lock"

printf 'global:\n    retry_count: 3\n' >"$conf"
run 0 "$lnetd" --config - --pidfile "$dir/pid" <"$conf"
exec {lock}<"$dir/pid"
ctl 0 global show
has out "retry_count: 3"
kill "$(cat "$dir/pid")"
expect "it ends" flock --timeout 60 "$lock"

# ---- where it cannot write ----

fails "^lnetd: socket $dir/none/s: No such file or directory: its directory" \
	--socket "$dir/none/s"
fails "^lnetd: socket /.*x: .*: paths of sockets" \
	--socket "/$(printf '%0200d' 0)x"
run 1 "$lnetd" --foreground --pidfile "$dir/none/pid"
has err "^lnetd: --pidfile $dir/none/pid: No such file or directory"
nothing_left "$ran"
ln -s "$dir/elsewhere" "$dir/pid"
run 1 "$lnetd" --foreground --pidfile "$dir/pid"
has err "^lnetd: --pidfile $dir/pid: "
rm "$dir/pid"
# What is no process's id is neither overwritten nor removed.
for text in "a diary" 12x "1 2" "-5"; do
	echo "$text" >"$dir/pid"
	run 1 "$lnetd" --foreground --pidfile "$dir/pid"
	has err "^lnetd: --pidfile $dir/pid: the file there has no process id"
	expect "$text is still there" grep -qx -- "$text" "$dir/pid"
done
rm "$dir/pid" && mkfifo "$dir/pid"
run 1 "$lnetd" --foreground --pidfile "$dir/pid"
expect "a pipe is still there" test -p "$dir/pid"
rm "$dir/pid"
# One that took its place is somebody else's.
echo 99999 >"$dir/pid"
need_lnetd a --pidfile "$dir/pid"
rm "$dir/pid"
echo "a diary" >"$dir/pid"
stop_lnetd a
expect "the diary is still there" grep -q diary "$dir/pid"
rm "$dir/pid"
expect "links are not followed" test ! -e "$dir/elsewhere"
echo text >"$sock"
run 1 "$lnetd" --foreground
has err "^lnetd: socket $sock: "
expect "no file is replaced" grep -q text "$sock"
rm "$sock"
if [ -e /dev/full ]; then
	run 1 bash -c '"$1" --foreground --pidfile "$2" >/dev/full' - \
		"$lnetd" "$dir/pid"
	has err "^lnetd: stdout: No space left on device"
	nothing_left "stdout is full"
	run 1 bash -c '"$1" --help >/dev/full' - "$lnetd"
fi
run 0 bash -c '"$1" --version >&- 2>&- <&-' - "$lnetd"

finish
