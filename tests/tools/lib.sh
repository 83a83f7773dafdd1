# SPDX-License-Identifier: BSD-3-Clause
# What the tests of the programs share: for sourcing, from the top of the build.
#
#	$dir	a directory of its own, which is removed at the end
#	$lnetd, $lnetctl, $lst, $rpcserve, $rpcping	the programs
#	ULNET_SOCKET	a socket in it, for both

set -uo pipefail
. "${srcdir:-.}/tests/port.sh" || exit
tools=$PWD/tools/bin
# In a build, which is where the programs do not look.
[ ! -d .libs ] ||
	export LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
lnetd=$tools/lnetd lnetctl=$tools/lnetctl lst=$tools/lst
rpcserve=$tools/rpcserve rpcping=$tools/rpcping
ping=("$rpcping") # what start_ping runs
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-tools.XXXXXX")
export ULNET_SOCKET=$dir/lnetd.sock
unset NOTIFY_SOCKET
checks=0 bad=0
declare -A pids=() # of daemons in the foreground, by name

clean_up() {
	local name file

	for name in "${!pids[@]}"; do
		kill -KILL "${pids[$name]}" 2>/dev/null
	done
	# Those in the background, when a test ended early.
	for file in "$dir/pid" "$dir/home/pid"; do
		[ ! -s "$file" ] || kill -KILL "$(cat "$file")" 2>/dev/null
	done
	rm -rf "$dir"
}
trap clean_up EXIT

# A test that hangs is told to end (run_test.sh): it says what it waits for.
hangs() { # COMMAND
	complain "it hangs in '$1', called by ${FUNCNAME[*]:1}, after: ${ran:-nothing}"
	exit 1
}
trap 'hangs "$BASH_COMMAND"' TERM

complain() {
	echo "FAILED: $*"
	bad=$((bad + 1))
}

skip() {
	echo "$*"
	exit 77
}

finish() {
	local name

	for name in "${!pids[@]}"; do
		stop_lnetd "$name"
	done
	echo "$checks checks, $bad failed"
	[ $bad = 0 ] && [ $checks -gt 0 ]
	exit
}

# run STATUS COMMAND...: output is in $dir/out and $dir/err.
run() {
	local expected=$1 status=0

	shift
	checks=$((checks + 1)) ran="$*"
	"$@" >"$dir/out" 2>"$dir/err" || status=$?
	[ $status = "$expected" ] || {
		complain "$ran: exit status $status, expected $expected"
		sed 's/^/| /' "$dir/out" "$dir/err"
	}
}

ctl() { # STATUS ARGUMENT...
	run "$1" "$lnetctl" "${@:2}"
}

# The last command's output, or errors, are stdin; nothing else.
same() { # out|err
	checks=$((checks + 1))
	diff -u - "$dir/$1" >"$dir/diff" || {
		complain "$ran: std$1 is not what was expected"
		sed 's/^/| /' "$dir/diff"
	}
}

# They have a line that matches the pattern (ERE).
has() { # out|err PATTERN
	checks=$((checks + 1))
	grep -qE -- "$2" "$dir/$1" || {
		complain "$ran: std$1 has no $2"
		sed 's/^/| /' "$dir/$1"
	}
}

lacks() { # out|err PATTERN
	checks=$((checks + 1))
	! grep -qE -- "$2" "$dir/$1" || {
		complain "$ran: std$1 has $2"
		sed 's/^/| /' "$dir/$1"
	}
}

silent() { # out|err
	checks=$((checks + 1))
	[ ! -s "$dir/$1" ] || {
		complain "$ran: std$1 is not empty"
		sed 's/^/| /' "$dir/$1"
	}
}

expect() { # TEXT COMMAND...: a condition
	checks=$((checks + 1))
	"${@:2}" || complain "$1"
}

# start NAME COMMAND...: in the foreground; returns when it has said a line, that
# it is ready, or has failed (then 1). $ready is the line; stderr is $dir/NAME.err.
start() {
	local name=$1 fifo=$dir/$1.fifo

	shift
	rm -f "$fifo" && mkfifo "$fifo" || return
	"$@" >"$fifo" 2>"$dir/$name.err" </dev/null &
	pids[$name]=$!
	ready=
	# Ends with the line, or with the process.
	read -r ready <"$fifo" && return 0
	wait "${pids[$name]}"
	started=$?
	unset "pids[$name]"
	return 1
}

start_lnetd() { # NAME [ARGUMENT...]
	start "$1" "$lnetd" --foreground "${@:2}"
}

# stop_lnetd NAME [SIGNAL]: it must end with 0.
stop_lnetd() {
	local status=0

	checks=$((checks + 1))
	kill -"${2:-TERM}" "${pids[$1]}"
	wait "${pids[$1]}" || status=$?
	unset "pids[$1]"
	[ $status = 0 ] || {
		complain "$1: exit status $status after a signal"
		sed 's/^/| /' "$dir/$1.err"
	}
}

need_lnetd() { # as start_lnetd, but without one there is no test
	start_lnetd "$@" && return
	complain "lnetd $*: not ready, exit status $started"
	sed 's/^/| /' "$dir/$1.err"
	finish
}

need_rpcserve() { # NAME [ARGUMENT...]
	start "$1" "$rpcserve" "${@:2}" && return
	complain "rpcserve $*: not ready, exit status $started"
	sed 's/^/| /' "$dir/$1.err"
	finish
}

# own_network TOOL...: goes on in a network of the test's own, in which all ports are free, with
# mounts of its own. Without that, or one of the tools, there is no test.
own_network() {
	local tool
	local -a own

	PATH=$PATH:/usr/sbin
	for tool in "$@" unshare ip; do
		type "$tool" >/dev/null 2>&1 || skip "there is no $tool"
	done
	if [ -z "${OWN_NETWORK:-}" ]; then
		own=(unshare --user --map-root-user --net --mount)
		[ "$(id -u)" != 0 ] || ! unshare --net --mount true 2>/dev/null ||
			own=(unshare --net --mount)
		"${own[@]}" true 2>/dev/null || skip "no namespaces can be made here"
		export OWN_NETWORK=1
		rm -rf "$dir"
		exec "${own[@]}" bash "$0"
	fi
	ip link set lo up
}

# await FILE PATTERN [LINE]: until the file has a line that matches, from LINE
# on. Whoever writes it has a minute; rpcping, no more when it has ended.
await() {
	local tries over=''

	checks=$((checks + 1))
	for ((tries = 0; tries < 600; tries++)); do
		[ "$1" != "$dir/live" ] || kill -0 "${pids[ping]:-0}" 2>/dev/null || over=1
		tail -n "+${3:-1}" "$1" | grep -qE -- "$2" && return
		[ -z "$over" ] || break
		sleep 0.1
	done
	complain "$1 never had $2"
	sed 's/^/| /' "$1"
}

# ctl_until PATTERN ARGUMENT...: asks lnetctl until its output has a line that
# matches. The node has a minute.
ctl_until() {
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		ctl 0 "${@:2}"
		grep -qE -- "$1" "$dir/out" && return
		sleep 0.1
	done
	complain "$ran: stdout never had $1"
	sed 's/^/| /' "$dir/out"
}

# ctl_at_last ARGUMENT...: lnetctl, again and again until it succeeds. For what a node
# does only once for each request, such as a discovery, which fails if its peer does
# not answer within a second. The node has a minute.
ctl_at_last() {
	local tries

	for ((tries = 0; tries < 60; tries++)); do
		! "$lnetctl" "$@" >"$dir/out" 2>"$dir/err" || break
	done
	ctl 0 "$@"
}

# start_ping ARGUMENT...: rpcping with ${client[@]} in the background, with a live
# line each 100 ms in $dir/live. Returns when calls are answered.
start_ping() {
	: >"$dir/live"
	"${ping[@]}" "${client[@]}" --live --interval 0.1 "$@" \
		>"$dir/ping.out" 2>"$dir/live" </dev/null &
	pids[ping]=$!
	ran="rpcping $*"
	await "$dir/live" ' [1-9][0-9]* calls/s'
}

# end_ping STATUS
end_ping() {
	local status=0

	wait "${pids[ping]}" || status=$?
	unset 'pids[ping]'
	cp "$dir/ping.out" "$dir/out"
	cp "$dir/live" "$dir/err"
	expect "$ran: exit status $status, expected $1" test $status = "$1"
}
