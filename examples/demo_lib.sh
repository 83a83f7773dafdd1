# SPDX-License-Identifier: BSD-3-Clause
# Functions for the parts of ./demo, which source this file with the directory of
# the build as argument (tools/ and examples/ are in it). Changes to a temporary
# directory. At the end kills the processes in $pids and *.pid, and removes the
# directory.

set -uo pipefail
PATH=$(cd "${1:-.}" && pwd)/tools/bin:$(cd "${1:-.}" && pwd)/examples:$PATH
unset ULNET_SOCKET NOTIFY_SOCKET
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit

dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-demo.XXXXXX") && cd "$dir" || exit
declare -A pids=() # by name

clean_up() {
	disown -a
	kill -KILL "${pids[@]}" $(cat "$dir"/*.pid 2>/dev/null) 2>/dev/null
	cd / && rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
trap : PIPE # writing to a process that is gone fails, and ends nothing

die() {
	echo "demo: $*" >&2
	exit 1
}

say() {
	printf '\n%s\n' "$*"
}

# wait_until WHAT COMMAND...: waits until the command succeeds, at most a minute
wait_until() {
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		! "${@:2}" || return 0
		sleep 0.1
	done
	die "$1"
}

# ---- commands, as they would be typed ----

show() { # COMMAND...
	local word

	printf '  $'
	for word; do
		[[ $word != *[^[:alnum:]./@:_-]* ]] || word="'$word'"
		printf ' %s' "$word"
	done
	echo
}

# run STATUS LINES COMMAND...: prints the command, and the first LINES of its
# output, which is kept in the file "output".
run() {
	local status=0 expected=$1 lines=$2 more

	shift 2
	show "$@"
	"$@" >output 2>&1 </dev/null || status=$?
	head -n "$lines" output | sed 's/^/  /'
	more=$(($(wc -l <output) - lines))
	[ "$more" -le 0 ] || echo "  ... ($more more lines)"
	[ "$status" = "$expected" ] || {
		tail -n +$((lines + 1)) output | sed 's/^/  /' >&2
		die "$*: exit status $status, expected $expected"
	}
}

# Fails unless the last command's output has a line that matches ERE.
has() { # ERE
	grep -qE -- "$1" output || die "the output has no $1"
}

# ---- what is left ----

# Has the process ended? One that is a zombie has.
gone() { # PID
	[ ! -e "/proc/$1/stat" ] ||
		[[ $(cat "/proc/$1/stat" 2>/dev/null) =~ \)\ Z|^$ ]]
}

# Prints the TCP sockets of $port; with LISTEN only those that listen.
sockets() { # [LISTEN]
	awk -v port="$(printf '%04X' "$port")" -v state="${1:+0A}" '
		{ split($2, a, ":") }
		a[2] == port && (state == "" || $4 == state)
	' /proc/net/tcp /proc/net/tcp6
}

# Sets $port to a free port, below those that the system assigns by itself.
free_port() {
	local tries

	for ((tries = 0; tries < 100; tries++)); do
		port=$((1024 + (RANDOM << 15 | RANDOM) % 31000))
		[ -n "$(sockets)" ] || return 0
	done
	die "no free TCP port found"
}

nothing_left() { # PID...
	local pid left

	for pid; do
		gone "$pid" || die "process $pid is still there"
	done
	left=$(ls -d ./*.sock ./*.pid 2>/dev/null)
	[ -z "$left" ] || die "files are left: $left"
	[ -z "$(sockets LISTEN)" ] || die "somebody still listens on port $port"
}
