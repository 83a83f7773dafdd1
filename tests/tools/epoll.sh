#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/epoll: nodes in a program's own event loop. Nobody waits for longer than
# there is nothing to do, or the test takes its 300 s.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

epoll=$PWD/examples/epoll
free_port port || skip "perl cannot find a free port"

run 2 "$epoll"
has err 'usage: epoll PORT NID$'
run 1 "$epoll" "$port" 127.0.0.256@tcp </dev/null
has err '127.0.0.256@tcp: Invalid argument$'
run 1 "$epoll" "$port" 127.0.0.1@tcp </dev/null
has err 'a pipe or a terminal: Operation not permitted$'

# One that only waits: turns come from the network alone.
mkfifo "$dir/in"
"$epoll" "$port" 127.0.0.1@tcp <"$dir/in" >"$dir/server.out" \
	2>"$dir/server.err" &
pids[server]=$!
exec {in}>"$dir/in"
await "$dir/server.out" '^ready$'

# Several at once, each waits for its answer or for its time-out: nobody listens
# on the second, and nobody answers on the third.
silent_port() {
	exec {in}>&-
	exec perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Listen => 5, Proto => "tcp",
			LocalAddr => "127.0.0.9", LocalPort => $ARGV[0])
			or die;
		print "silent\n"; close STDOUT; sleep 300' "$port"
}
start silent silent_port || finish
run 1 "$epoll" "$port" 127.0.0.2@tcp < <(
	printf '127.0.0.1@tcp\n127.0.0.8@tcp\n127.0.0.9@tcp\nx\n127.0.0.1'
	sleep 0.2
	printf '@tcp\n0@lo\n')
has out '^ready$'
has out '^127.0.0.8@tcp: '
has out '^127.0.0.9@tcp: '
has out '^0@lo: 1 interfaces$'
has out '^x: not a NID'
expect "$ran: two answers" \
	test "$(grep -c '^127.0.0.1@tcp: 1 interfaces$' "$dir/out")" = 2
kill "${pids[silent]}"
unset "pids[silent]"

# It was there all the time, and can ping, too.
echo 127.0.0.1@tcp >&"$in"
await "$dir/server.out" '^127.0.0.1@tcp: 1 interfaces$'
exec {in}>&-
stop=0
wait "${pids[server]}" || stop=$?
unset "pids[server]"
expect "the first one ends with 0, not $stop" test $stop = 0
finish
