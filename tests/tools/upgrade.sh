#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What ulrpc_cluster(7) says of many servers: each is stopped and started again in turn,
# and no call to any of them is lost, though none may be executed twice; a client whose
# server's first NID is dead comes in by the second one; and the page's program.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
client=(--net 'tcp(127.0.0.1)' --port "$port")

serve() { # NUMBER
	need_rpcserve "s$1" --net "tcp(127.0.0.$1)" --port "$port" \
		--service echo --grace 60 --workers 4
}

# The last line of each server says that its calls are answered.
answered() {
	local line

	line=$(wc -l <"$dir/live")
	await "$dir/live" ' [1-9][0-9]* calls/s' $((line + 2))
}

# Step by step: stopped, away for three lines, back.
upgrade() { # NUMBER
	local line

	stop_lnetd "s$1"
	line=$(wc -l <"$dir/live")
	await "$dir/live" . $((line + 3))
	serve "$1"
	answered
}

for number in 2 3 4; do
	serve $number
done
for method in Echo EchoWorker; do
	start_ping --time 1h --inflight 8 --method $method --delay 5ms \
		--semantics at-most-once --deadline 100 --grace 100 --verify \
		127.0.0.2@tcp 127.0.0.3@tcp 127.0.0.4@tcp
	for number in 2 3 4; do
		upgrade $number
	done
	kill -INT "${pids[ping]}"
	end_ping 0
	expect "$method: three servers and their sum, and nothing is lost" \
		test "$(grep -c '^  calls [1-9][0-9]*, lost 0,' "$dir/out")" = 4
	sed -n "s/^  calls/$method: calls/p" "$dir/out"
done

# Nobody listens at .8, so .2 is tried at once: without a retry of the call.
run 0 "$rpcping" "${client[@]}" --count 10 --deadline 60 \
	127.0.0.8@tcp,127.0.0.2@tcp
has out '^  calls 10, lost 0,'
# Somebody listens at .9, and says nothing: .2 is tried when that has taken too long.
silent_port() {
	exec perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Listen => 5, Proto => "tcp",
			LocalAddr => "127.0.0.9", LocalPort => $ARGV[0])
			or die;
		print "silent\n"; close STDOUT; sleep 300' "$port"
}
start silent silent_port || finish
run 0 "$rpcping" "${client[@]}" --count 10 --deadline 60 \
	127.0.0.9@tcp,127.0.0.2@tcp
has out '^  calls 10, lost 0,'
kill "${pids[silent]}"
unset "pids[silent]"

# The program of the page; its port is this test's, and its deadline, too.
shown() { # PATTERN: of the display's first line
	awk -v first="$1" '
		/^\.Bd -literal/ { wanted = 1; next }
		wanted && $0 ~ first { inside = 1 }
		{ wanted = 0 }
		inside && /^\.Ed/ { exit }
		inside' "${srcdir:-.}/man/man7/ulrpc_cluster.7" | sed 's/\\e/\\/g'
}
build_all() { # PROGRAM SECONDS
	shown '^#include <err.h>' |
		sed "s/9988/$port/; s/10000000/${2}000000/" >"$dir/all.c"
	run 0 "${CC:-cc}" -std=gnu11 -Wall -Wextra -Werror -I include \
		-I "${srcdir:-.}/include" "$dir/all.c" -o "$dir/$1" \
		"$PWD/.libs/libulrpc.so" "$PWD/.libs/libulnet.so"
}
if command -v "${CC:-cc}" >/dev/null && [ -e .libs/libulrpc.so ]; then
	build_all patient 60
	printf '# name NIDs\n\noslo 127.0.0.2@tcp\nbergen %s\n' \
		'127.0.0.8@tcp 127.0.0.3@tcp' >"$dir/servers"
	run 0 "$dir/patient" 127.0.0.1@tcp "$dir/servers" echo Raw
	has out '^oslo: ok, executed$'
	has out '^bergen: ok, executed$'
	expect "two servers" test "$(wc -l <"$dir/out")" = 2
	build_all hasty 1
	echo 'nowhere 127.0.0.8@tcp' >"$dir/servers"
	run 0 "$dir/hasty" 127.0.0.1@tcp "$dir/servers" echo Raw
	has out '^nowhere: unreachable, not executed$'
fi
finish
