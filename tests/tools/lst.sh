#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lst(8) drives nodes in processes of their own: sessions, groups, tests that
# run, are stopped, and find what is wrong.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

export LST_SESSION=lst-test XDG_RUNTIME_DIR=$dir/run
mkdir "$XDG_RUNTIME_DIR"
free_port port || skip "perl cannot find a free port"

lst() { # STATUS ARGUMENT...
	run "$1" "$lst" "${@:2}"
}

# wrong STATUS PATTERN ARGUMENT...: one error, and nothing on stdout.
wrong() {
	lst "$1" "${@:3}"
	has err "$2"
	silent out
}

# ---- the command line, and no session ----

wrong 2 'lst: missing: a command'
wrong 2 'lst: no such command: nonsense' nonsense
wrong 2 "unrecognized option '--nope'" --nope
wrong 2 "no such command: ad_group" ad_group
has err "^Did you mean 'add_group'\?$"
wrong 2 "no such command: stta" stta
has err "^Did you mean 'stat'\?$"
wrong 2 "unrecognized option '--jsno'" --jsno list_group
has err "^Did you mean '--json'\?$"
lst 0 --help add_group
same out <<<'usage: lst [OPTION]... add_group NAME NIDS...'
lst 0 stop --help
same out <<<'usage: lst [OPTION]... stop [--force] [BATCH]'
lst 0 --help add_test
has out '^TEST: ping, or brw'
wrong 2 "no such command: ad_group" --help ad_group
wrong 1 'there is no session lst-test' list_group
run 1 env -u LST_SESSION "$lst" list_group
has err 'LST_SESSION'
run 1 env LST_SESSION=../x "$lst" list_group
has err 'LST_SESSION'
expect "no file is left" test -z "$(ls "$XDG_RUNTIME_DIR")"
wrong 1 'another --net is needed' --config /dev/null new_session lab
expect "no file is left" test -z "$(ls "$XDG_RUNTIME_DIR")"

# ---- groups ----

need_lnetd a --lst all --lst-rpc-timeout 3 --net 'tcp(127.0.0.1)' \
	--cpts 2 --port "$port"
need_rpcserve b --lst '127.0.0.[3,5]@tcp' --net 'tcp(127.0.0.2)' --port "$port" --cpts 2
need_lnetd deaf --net 'tcp(127.0.0.4)' --port "$port" --socket "$dir/deaf"
console=(--net 'tcp(127.0.0.3)' --port "$port")
lst 0 "${console[@]}" new_session lab
silent out
wrong 1 'there is a session already: lab' "${console[@]}" new_session lab
lst 0 show_session
has out '^lab: console 127.0.0.3@tcp, stamp '
wrong 2 'missing: arguments' add_group clients
wrong 1 "'nonsense@': at character 10: unknown type of net: NIDs" add_group clients nonsense@
wrong 1 "'\*@tcp': a group has at most 1024 nodes" add_group clients '*@tcp'
wrong 1 '0@lo: a NID with an address' add_group clients 0@lo
wrong 1 "group '-x'|invalid option" add_group -- -x 127.0.0.1@tcp
lst 0 add_group clients 127.0.0.1@tcp
lst 0 add_group servers 127.0.0.2@tcp '127.0.0.[1-2]@tcp'
wrong 1 'there is a group clients already' add_group clients 127.0.0.2@tcp
# Who does not answer is in the group, and is down.
wrong 1 '127.0.0.9@tcp: no answer' add_group some '127.0.0.[1,9]@tcp'
lst 0 list_group
same out <<END
clients: 127.0.0.1@tcp
servers: 127.0.0.2@tcp 127.0.0.1@tcp
some: 127.0.0.1@tcp 127.0.0.9@tcp (down)
END
lst 0 list_group --all some
same out <<<'some: 127.0.0.1@tcp 127.0.0.9@tcp (down)'
lst 0 list_group --down some
same out <<<'some: 127.0.0.9@tcp (down)'
lst 0 --json list_group some
same out <<END
{"groups": [{"group": "some", "nodes": [{"nid": "127.0.0.1@tcp", \
"state": "active"}, {"nid": "127.0.0.9@tcp", "state": "down"}]}]}
END
lst 0 add_batch first
wrong 1 'add_test: 127.0.0.9@tcp is down: see update_group' \
	add_test --from clients --to some ping
wrong 2 'one of --refresh, --clean and --remove' update_group some
wrong 2 'one of --refresh, --clean and --remove' \
	update_group --refresh --clean down some
wrong 2 '--clean ill: unknown, active, busy, down or invalid' update_group --clean ill some
wrong 1 'there is no group nobody' update_group --clean down nobody
wrong 1 'there is no group nobody' update_group --refresh nobody
wrong 1 "group some has no node of '127.0.0.8@tcp'" \
	update_group --remove 127.0.0.8@tcp some
wrong 1 '127.0.0.9@tcp: no answer' update_group --refresh some
lst 0 update_group some --clean invalid
lst 0 list_group some
same out <<<'some: 127.0.0.1@tcp'
# A node of another group stays a member.
lst 0 update_group some --remove '127.0.0.[1-4]@tcp'
wrong 1 'group some has no nodes' add_test --from some --to servers ping
lst 0 del_group some
lst 0 update_group clients --refresh
# Another console has to force it.
export LST_SESSION=other
lst 0 "${console[@]}" new_session rival
wrong 1 '127.0.0.2@tcp: belongs to the session lab; .*--force' \
	add_group g 127.0.0.2@tcp
lst 0 list_group --busy --down
same out <<<'g: 127.0.0.2@tcp (busy)'
lst 0 end_session
export LST_SESSION=lst-test

# Who is no console of the node has no say; nor has who says no session.
export LST_SESSION=stranger
lst 0 --net 'tcp(127.0.0.6)' --port "$port" new_session stranger
wrong 1 '127.0.0.2@tcp: does not take the word of this console' \
	add_group g 127.0.0.2@tcp
lst 0 end_session
export LST_SESSION=lst-test

# ---- batches and tests ----

lst 0 add_batch bulk
wrong 1 'which batch' run
wrong 1 'there is a batch bulk already' add_batch bulk
wrong 1 'batch bulk has no tests' run bulk
both=(--batch bulk --from clients --to servers)
wrong 2 '--from and --to are needed' add_test --batch bulk ping
wrong 2 'the test is ping or brw' add_test "${both[@]}" pong
wrong 2 'ping has no arguments' add_test "${both[@]}" ping size=8
wrong 2 "brw has" add_test "${both[@]}" brw size:8
wrong 2 'lst: check=some: none, simple or full' add_test "${both[@]}" brw check=some
wrong 2 "unrecognized option '--form'" add_test --form clients
has err "^Did you mean '--from'\?$"
has err "^See 'lst --help add_test'"
wrong 2 'lst: size=2M: a number from 8 to 1048576' add_test "${both[@]}" brw size=2M
wrong 2 'multiples of 8' add_test "${both[@]}" brw size=12
wrong 2 'off: ' add_test "${both[@]}" brw size=8k off=512
wrong 2 'concurrency.*1025' add_test --concurrency 1025 "${both[@]}" brw
wrong 2 'loop.*0' add_test --loop 0 "${both[@]}" brw
wrong 1 '--distribute 1:3' add_test --distribute 1:3 "${both[@]}" brw
wrong 1 'there is no group nobody' \
	add_test --batch bulk --from clients --to nobody ping
wrong 1 'there is no batch b' \
	add_test --batch b --from clients --to servers ping
for check in none simple full; do
	for op in read write; do
		lst 0 add_test "${both[@]}" --loop 20 --concurrency 4 \
			--distribute 1:2 brw $op check=$check size=64k
	done
done
lst 0 add_test "${both[@]}" --loop 100 ping
lst 0 list_batch
has out '^bulk:$'
has out '^    from clients to servers: brw write check=full size=64k$'
lst 0 --json run --wait bulk
same out <<<'{"command": "run", "done": true}'
expect "progress is JSON" awk '!/^\{"batch": "bulk", "busy": [0-9]+, "nodes": 1\}$/ { exit 1 }' \
	"$dir/err"
lst 0 show_error clients servers
same out <<<"0 of 2 nodes have errors"
lst 0 query bulk
same out <<<"127.0.0.1@tcp: 0 tests are running"
wrong 1 'batch bulk has 7 tests' query --test 8 bulk
wrong 2 '--test 0: a number from 1' query --test 0 bulk
wrong 1 'group servers is in a test' del_group servers

# Without end, until it is stopped.
lst 0 add_batch long
lst 0 add_test --batch long --from clients --to servers --concurrency 2 brw \
	write size=8k check=simple
lst 0 run long
lst 0 --json query long
same out <<<'{"nodes": [{"nid": "127.0.0.1@tcp", "running": 1}]}'
wrong 1 'batch is running' \
	add_test --batch long --from clients --to servers ping
lst 0 --json query --server long
same out <<END
{"nodes": [{"nid": "127.0.0.1@tcp", "running": 1}, \
{"nid": "127.0.0.2@tcp", "running": 0}]}
END
wrong 2 '--server: of which --batch' ping --server
wrong 2 '--timeout 2: a number from 3 to 60' ping --timeout 2
wrong 1 'there is no batch none' ping --batch none
lst 0 ping
same out <<END
127.0.0.1@tcp: active, session lab
127.0.0.2@tcp: active, session lab
END
lst 0 ping --batch long
same out <<<'127.0.0.1@tcp: active, session lab'
lst 0 --json ping --batch long --server --nodes 127.0.0.2@tcp
same out <<END
{"nodes": [{"nid": "127.0.0.2@tcp", "state": "active", "session": "lab", \
"timeout": 100}, {"nid": "127.0.0.1@tcp", "state": "active", \
"session": "lab", "timeout": 100}]}
END
lst 1 ping --nodes 127.0.0.[2,9]@tcp --group clients
same out <<END
127.0.0.1@tcp: active, session lab
127.0.0.2@tcp: active, session lab
127.0.0.9@tcp: down
END
has err '127.0.0.9@tcp: no answer'
wrong 1 'there is no group nobody' stat nobody
wrong 2 '--session are needed' show_error
lst 0 show_error --session
same out <<<"0 of 2 nodes have errors"
lst 0 show_error 127.0.0.1@tcp
same out <<<"0 of 1 nodes have errors"
lst 0 stat --delay 1 --count 1 --rate --read 127.0.0.1@tcp
has out '^127.0.0.1@tcp: received [1-9][0-9]* messages/s$'
lst 0 stat --delay 1 --count 1 --bw --write --mbs --avg --max servers
has out '^servers avg: sent [0-9.]+ MB/s$'
has out '^servers max: sent [0-9.]+ MB/s$'
expect "nothing but what was asked for" test "$(wc -l <"$dir/out")" = 2
# What one writes the other one receives.
lst 0 stat --delay 1 --count 1 --bw --read --avg --min --max servers
expect "least < average < most" awk '{ v[$2] = $4 }
	END { exit !(v["min:"] < v["avg:"] && v["avg:"] < v["max:"]) }' \
	"$dir/out"
lst 0 --json stat --delay 1 --count 1 --min servers
has out '^\{"rates": \[\{"group": "servers", "of": "min", "received_per_s": [1-9].*\]\}$'
lst 0 --json stat --delay 1 --count 2 servers
expect "two rounds of two nodes" awk '{ n += gsub(/"nid":/, "") }
	/^\{"rates": \[\{.*\}, \{.*\}\]\}$/ { r++ }
	END { exit !(NR == 2 && r == 2 && n == 4) }' "$dir/out"
# A signal ends it after a round, with status 0.
for signal in INT TERM; do
	# Else the lines of the round before could be taken for those of this one.
	: >"$dir/rates"
	"$lst" stat --delay 1 servers >"$dir/rates" 2>&1 </dev/null &
	pids[stat]=$!
	until grep -q '^127.0.0.2@tcp: received' "$dir/rates" ||
		! kill -0 "${pids[stat]}" 2>/dev/null; do
		sleep 0.1
	done
	stop_lnetd stat $signal
	expect "SIG$signal: whole rounds of 2 nodes: $(cat "$dir/rates")" \
		test $(($(wc -l <"$dir/rates") % 2)) = 0
done
lst 0 --json show_error servers
same out <<<'{"nodes": [], "asked": 2}'
lst 0 stat --delay 1 --count 1 clients
has out '^127.0.0.1@tcp: received [1-9][0-9]* messages/s, .*; sent [1-9]'
lst 0 --json stat --delay 1 --count 1 clients
has out '^\{"rates": \[\{"nid": "127.0.0.1@tcp", "rec.*"sent_bytes_per_s": [1-9]'
lst 0 stop long
lst 0 query long
same out <<<"127.0.0.1@tcp: 0 tests are running"

# What public scripts write: letters, abbreviations, options behind names, and
# the batch that each session has.
lst 0 query long --all --loop 2 -d 1
same out <<END
127.0.0.1@tcp: 0 tests are running
127.0.0.1@tcp: 0 tests are running
END
lst 0 add_test --batch batch -c 2 -l 3 -d 1:1 -f clients -t servers brw write \
	check=simple size=1m
lst 0 run -w batch
lst 0 list_batch batch
same out <<END
batch:
    from clients to servers: brw write check=simple size=1m
END
lst 0 ping -g clients -t 10
wrong 2 "unrecognized option|invalid option" stop -x long

lst 0 list_batch long
same out <<END
long:
    from clients to servers: brw write size=8k check=simple
END
wrong 1 'there is no batch none' list_batch none
lst 0 --json list_batch first
same out <<<'{"batches": [{"batch": "first", "tests": []}]}'

# Of which test: each node has but its own, and 127.0.0.1 sends to itself.
lst 0 add_batch two
lst 0 add_test --batch two --concurrency 2 --from clients --to servers ping
lst 0 add_test --batch two --concurrency 3 --from servers --to clients ping
wrong 2 '--timeout -1: a number from 0' run --timeout -1 two
lst 0 --json run --timeout 7 two
same out <<<'{"command": "run", "done": true}'
lst 0 query two
same out <<END
127.0.0.1@tcp: 2 tests are running
127.0.0.2@tcp: 1 tests are running
END
lst 0 query --test 1 --server two
same out <<END
127.0.0.1@tcp: 2 requests are running
127.0.0.2@tcp: 0 requests are running
END
lst 0 --json query --test 2 two
same out <<END
{"nodes": [{"nid": "127.0.0.2@tcp", "running": 3}, \
{"nid": "127.0.0.1@tcp", "running": 3}]}
END
lst 0 --json stop two
same out <<<'{"command": "stop", "done": true}'

# A server that dies while it is used: its client notices, and says so.
lst 0 run long
kill -KILL "${pids[b]}"
wait "${pids[b]}"
unset 'pids[b]'
lst 0 run --wait long
lst 1 show_error clients servers
has out '^127.0.0.1@tcp: brw errors [1-9]'
has err '127.0.0.2@tcp: no answer'
lst 1 --json show_error clients servers
has out '^\{"nodes": \[\{"nid": "127.0.0.1@tcp", "brw_errors": [1-9].*\}\], "asked": 2\}$'
lst 1 --json end_session
same out <<<'{"command": "end_session", "done": false}'
has err '127.0.0.2@tcp: no answer'
expect "no file is left" test -z "$(ls "$XDG_RUNTIME_DIR")"
wrong 1 'there is no session' query long

# ---- the member is free again ----

lst 0 "${console[@]}" new_session again
lst 0 add_group clients 127.0.0.1@tcp
lst 0 add_group same 127.0.0.1@tcp
lst 0 del_group same
lst 0 show_error clients
# What was made a member twice is let go of twice.
sed -i 's/^node .* active$/node 127.0.0.1@tcp unknown/' \
	"$XDG_RUNTIME_DIR/ulnet-lst-$LST_SESSION"
lst 0 list_group --unknown
same out <<<'clients: 127.0.0.1@tcp (unknown)'
lst 0 update_group clients --refresh
lst 0 list_group --active
same out <<<'clients: 127.0.0.1@tcp'
lst 0 del_group clients
lst 0 list_group
silent out
lst 0 end_session
lst 0 "${console[@]}" new_session rival
lst 0 add_group clients 127.0.0.1@tcp
lst 0 end_session

# ---- names are labels ----

wrong 1 '1 to 31 printable characters' new_session ''
wrong 1 '1 to 31 printable characters' new_session \
	12345678901234567890123456789012
wrong 1 '1 to 31 printable characters' new_session $'read\nwrite'
lst 0 "${console[@]}" new_session ' read/write "%s\'
lst 0 add_group clients 127.0.0.1@tcp
lst 0 show_session
has out '^ read/write "%s\\: console 127.0.0.3@tcp, stamp '
lst 0 --json show_session
has out '^\{"session": " read/write \\"%s\\\\", "console": '
lst 0 --json ping
has out '"session": " read/write \\"%s\\\\", "timeout": 100\}\]\}$'
lst 0 ping
has out '^127.0.0.1@tcp: active, session  read/write "%s\\$'
lst 0 end_session

# ---- a session that nobody uses ends ----

wrong 2 '--timeout 2147483648: a number from 0' new_session --timeout 2147483648
lst 0 "${console[@]}" new_session -f --timeo 60 old
lst 0 show_session
has out '^old: .* timeout 60 s$'
lst 0 add_group clients 127.0.0.1@tcp
touch -d '-1 hour' "$XDG_RUNTIME_DIR/ulnet-lst-$LST_SESSION"
for command in list_group 'add_group more 127.0.0.1@tcp'; do
	wrong 1 'the session old has ended: no command for 36.. s' $command
done
# The next one lets go of its members.
lst 0 "${console[@]}" new_session --timeout 0 new
lst 0 list_group
silent out
lst 0 add_group clients 127.0.0.1@tcp
touch -d '-1 hour' "$XDG_RUNTIME_DIR/ulnet-lst-$LST_SESSION"
lst 0 list_group
has out '^clients: 127.0.0.1@tcp$'
lst 0 end_session
lst 0 "${console[@]}" new_session old
lst 0 add_group clients 127.0.0.1@tcp
touch -d '-1 hour' "$XDG_RUNTIME_DIR/ulnet-lst-$LST_SESSION"
lst 0 end_session
expect "no file is left" test -z "$(ls "$XDG_RUNTIME_DIR")"
finish
