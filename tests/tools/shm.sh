#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes of one host over shared memory: how they get a NID, what is sent, and
# what becomes of the others when a peer is killed or stopped.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

# The numbers of this process, as those of other tests: no node gets them that is to
# have any.
a=$((1 << 31 | BASHPID << 8)) b=$((a + 1)) c=$((a + 2)) d=$((a + 3)) none=$((a + 4))

need_lnetd a --net "shm($a)"
ran="ready line" && echo "$ready" >"$dir/out"
has out "^lnetd: ready: $a@shm, socket "
need_rpcserve b --net "shm($b)"
ran="ready line" && echo "$ready" >"$dir/out"
has out "^rpcserve: ready: $b@shm, "
need_rpcserve c --net "shm($c)"

# ---- NIDs ----

ctl 0 ping "$b@shm" --timeout 60
same out <<END
ping:
- primary nid: $b@shm
  Multi-Rail: false
  peer_ni:
  - nid: $b@shm
END
ctl 255 ping "$none@shm" --timeout 60
has err "failed to ping $none@shm: Connection refused"
# Another node has it, or it is not a number.
ctl 158 net add --net shm --if "$b"
has err "another node of this host has this NID"
ctl 156 net add --net shm --if eth0
ctl 156 net add --net shm --if 0
# Any number, and as text.
ctl 0 net add --net shm1
ctl 0 net show --net shm1
has out "nid: [1-9][0-9]*@shm1\$"
ctl 0 net add --nid "$d@shm2"
ctl 0 net del --net shm1
ctl 0 net del --net shm2
cat >"$dir/conf" <<END
net:
    - net type: shm3
      local NI(s):
        - interfaces:
              0: $d
          lnd tunables:
              ring_size: 50000
              max_conns: 17
END
ctl 0 import <"$dir/conf"
ctl 0 export
has out "nid: $d@shm3\$"
has out "ring_size: 32768\$|max_conns: 17\$"
cp "$dir/out" "$dir/saved"
ctl 0 net del --net shm3
ctl 0 net del --net shm
ctl 0 import <"$dir/saved"
ctl 0 net show --net shm3
has out "nid: $d@shm3\$"

# ---- messages ----

# Without --net, the caller gets a number of its own.
run 0 "$rpcping" --count 500 "$b@shm"
has out "calls 500, lost 0, "
run 0 "$rpcping" --count 500 --poll "$b@shm"
has out "calls 500, lost 0, "
run 0 "$rpcping" --count 2000 --inflight 64 --verify --size 3000 "$b@shm"
has out "calls 2000, lost 0, "
run 0 "$rpcping" --count 40 --verify --bulk-read 1M "$b@shm"
has out "calls 40, lost 0, "
run 0 "$rpcping" --count 40 --verify --bulk-write 1M --inflight 4 "$b@shm"
has out "calls 40, lost 0, "

run 1 "$rpcping" --count 1 "$none@shm"
has err "is there a node on this host that has the NID"

# ---- one that does not answer ----

kill -STOP "${pids[b]}"
# Its calls end, however short or long others take meanwhile.
"$rpcping" --count 1 --deadline 3s "$b@shm" >"$dir/stopped.out" 2>&1 </dev/null &
stopped=$!
run 0 "$rpcping" --count 300 --deadline 60s "$c@shm"
has out "calls 300, lost 0, "
ctl 0 ping "$a@shm" --timeout 60
status=0
wait "$stopped" || status=$?
expect "calls to one that is stopped: exit status $status" test $status = 1
kill -CONT "${pids[b]}"
run 0 "$rpcping" --count 100 --deadline 60s "$b@shm"
has out "calls 100, lost 0, "

# ---- one that is killed ----

# Somebody calls b all the time, and c, whose calls are not harmed.
"$rpcping" --time 600s --inflight 16 --size 5000 --deadline 60s "$b@shm" \
	>"$dir/loser.out" 2>"$dir/loser.err" </dev/null &
pids[loser]=$!
"$rpcping" --count 20000 --inflight 16 --size 5000 --deadline 60s "$c@shm" \
	>"$dir/other.out" 2>"$dir/other.err" </dev/null &
other=$!
for n in 1 2 3; do
	run 0 "$rpcping" --count 50 --deadline 60s "$b@shm"
	kill -KILL "${pids[b]}"
	wait "${pids[b]}" 2>/dev/null
	unset "pids[b]"
	# The NID is free as soon as the process has gone.
	need_rpcserve b --net "shm($b)"
done
status=0
wait "$other" || status=$?
expect "calls to another process: exit status $status" test $status = 0
ran="calls to another process"
cp "$dir/other.out" "$dir/out"
has out "calls 20000, lost 0, "
kill -INT "${pids[loser]}"
wait "${pids[loser]}"
unset "pids[loser]"
run 0 "$rpcping" --count 50 --deadline 60s "$b@shm"
finish
