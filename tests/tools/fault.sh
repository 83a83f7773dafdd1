#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fault rules, by lnetctl, in nodes that talk over TCP, and what the counters and
# the health of their interfaces show of it: requirements D9, H7.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
b=$dir/b.sock serve=$dir/serve.sock

need_lnetd a --net 'tcp(127.0.0.1)' --port "$port"
need_lnetd b --net 'tcp(127.0.0.2)' --port "$port" --socket "$b"

# A rule of that kind has struck; how often depends on what else the nodes say.
struck() { # SOCKET KIND
	ctl 0 --socket "$1" fault "$2" show
	has out '^ +struck: [1-9][0-9]*$'
}

# ---- what lnetctl says ----

ctl 0 fault drop show
silent out
ctl 0 fault drop add --source '*' --dest 127.0.0.2@tcp --rate 10 \
	--portal 26,27 --message PUT --local_nid '*@tcp' --random
silent out
silent err
ctl 0 fault drop add -s 255.255.255.255@tcp1 -d '*' -i 0.5 -e local_error \
	-e Remote_Dropped
ctl 0 fault drop show
same out <<END
fault:
-     rule_type: drop
      source: "*"
      dest: 127.0.0.2@tcp
      local_nid: "*@tcp"
      portal:
      - 26
      - 27
      message:
      - PUT
      rate: 10
      random: true
      statistics:
            seen: 0
            struck: 0
            put: 0
            ack: 0
            get: 0
            reply: 0
-     rule_type: drop
      source: "*@tcp1"
      dest: "*"
      local_nid: "*"
      interval: 0.5
      health_error:
      - local_error
      - remote_dropped
      statistics:
            seen: 0
            struck: 0
            put: 0
            ack: 0
            get: 0
            reply: 0
END
ctl 0 fault --rule_type drop show
has out '^      dest: 127.0.0.2@tcp$'
ctl 0 fault corrupt add --rate 7
ctl 239 fault corrupt add --rate 7
has err 'there is this rule already'
ctl 0 fault show
expect "rules of all kinds" test "$(grep -c '^-     rule_type: ' "$dir/out")" = 3
ctl 0 fault list
expect "the same" test "$(grep -c '^-     rule_type: ' "$dir/out")" = 3
ctl 0 fault corrupt del --all
ctl 0 fault drop del --source '*' --dest 127.0.0.2@tcp
ctl 254 fault drop del --source '*' --dest 127.0.0.2@tcp
same err <<END
---
del:
-     fault:
      errno: -2
      descr: ! "there is no such rule"
...
END
ctl 0 fault --rule_type drop reset
ctl 0 fault drop del --all
ctl 0 fault drop show
silent out

# What is missing, and what is wrong.
ctl 234 fault
has err '^usage: lnetctl fault '
has err '--rule_type TYPE +drop, delay, duplicate, corrupt or error$'
ctl 234 fault drop
has err '^lnetctl fault drop: missing: add|del|reset|show$'
ctl 234 fault lose add
ctl 234 fault drop add --bogus
ctl 234 fault drop add --rate
ctl 255 fault drop add --rate many
ctl 234 fault drop lose
has err "action: unknown: "
ctl 234 fault drop add
same err <<END
---
add:
-     fault:
      errno: -22
      descr: ! "one of rate, interval and drop_all is needed"
...
END
ctl 234 fault drop add --rate 1 --interval 1
has err 'one of rate, interval and drop_all is needed'
ctl 234 fault drop add --rate 0
has err 'rate: 0 is not in 1\.\.4294967295'
ctl 234 fault drop add --rate 1 --source 10.0.0.1@nonsense
has err "source: cannot parse NID '10.0.0.1@nonsense'"
ctl 234 fault drop add --rate 1 --portal 64
ctl 234 fault drop add --rate 1 --message HELLO
ctl 234 fault delay add --rate 1
has err 'delay: latency is needed'
ctl 234 fault error add --rate 1
has err 'error: health_error is needed'
ctl 234 fault error add --rate 1 --health_error bad_mood
ctl 234 fault duplicate del
has err 'either source and dest, or all, is needed'

# ---- what the nodes do ----

ctl 0 ping 127.0.0.2@tcp --timeout 60
# The sender fails it, at once: nobody waits for an answer.
ctl 0 fault error add --message GET --drop_all --health_error local_no_route
ctl 255 ping 127.0.0.2@tcp --timeout 60
has err 'failed to ping 127.0.0.2@tcp: '
struck "$ULNET_SOCKET" error
ctl 0 fault error del --all
ctl 0 ping 127.0.0.2@tcp --timeout 60
# The receiver loses it.
ctl 0 --socket "$b" fault drop add -m GET --source 127.0.0.1@tcp -x
ctl 255 ping 127.0.0.2@tcp --timeout 1
struck "$b" drop
ctl 0 --socket "$b" stats show
ctl 0 --socket "$b" net show -v
ctl 0 --socket "$b" fault drop del --all
ctl 0 ping 127.0.0.2@tcp --timeout 60
# It comes late, and twice.
ctl 0 --socket "$b" fault delay add -m GET,REPLY -x --latency 0.1
ctl 0 fault duplicate add -x
ctl 0 ping 127.0.0.2@tcp --timeout 60
struck "$b" delay
struck "$ULNET_SOCKET" duplicate
ctl 0 fault duplicate del --all
ctl 0 --socket "$b" fault delay del --all
# Rules go when LNet does.
ctl 0 --socket "$b" fault drop add -x
ctl 0 --socket "$b" lnet unconfigure
ctl 0 --socket "$b" lnet configure --all
ctl 0 --socket "$b" fault drop show
silent out
ctl 0 ping 127.0.0.2@tcp --timeout 60

# ---- two rails: resends, and pings that heal ----

r=$dir/r.sock
need_lnetd r --net 'tcp(127.0.0.11),tcp1(127.0.0.13)' --port "$port" \
	--socket "$r"
need_lnetd q --net 'tcp(127.0.0.12),tcp1(127.0.0.14)' --port "$port" \
	--socket "$dir/q.sock"
rails() { # STATUS ARGUMENT...
	ctl "$1" --socket "$r" "${@:2}"
}

# The health stats of what was printed last: of its interface, or of the NID.
health() { # NAME [NID]
	sed -n "/nid: ${2:-}/,\$ s/^ *$1: //p" "$dir/out" | head -n 1
}

# Nothing is under way between them when each has told the other of itself.
rails 0 discover --timeout 60 127.0.0.12@tcp
ctl 0 --socket "$dir/q.sock" discover --timeout 60 127.0.0.11@tcp
# A ping that one interface cannot send is sent by the other, and answered. They
# take turns, so it is one of the first pings that is sent again; then the one
# that fails is ill, and used no more.
rails 0 fault error add --local_nid 127.0.0.11@tcp -x -e local_dropped
for _ in 1 2 3 4; do
	rails 0 ping --timeout 60 127.0.0.12@tcp
done
rails 0 stats show
has out '^    resend_count: 1$'
has out '^    successful_resends: 1$'
has out '^    resends_timeout: 0$'
has out '^    resends_local: 1$'
has out '^    resends_remote: 0$'
has out '^    failed_resends: 0$'
has out '^    local_dropped_count: [1-9]'
rails 0 net show -v 5 --net tcp
has out '^            resend_count: 1$'
has out '^                  local: 1$'
has out '^                  network timeout: 0$'
rails 0 net show -v 5 --net tcp1
has out '^            resend_count: 0$'
has out '^                  samples: [1-9]'
# It is pinged from, in vain.
ctl_until '^ +ping_count: ([2-9]|[1-9][0-9])' --socket "$r" net show -v 2 \
	--net tcp
silent=$(health ping_count)
ctl_until '^ +next_ping: 1$' --socket "$r" net show -v 2 --net tcp
has out '^ +health value: 900$'
has out '^ +dropped: [1-9]'
rails 0 debug recovery
same out <<END
Local NI recovery:
      nid-0: 127.0.0.11@tcp
END
# Counters are reset; how it is, is not.
rails 0 stats reset
rails 0 stats show
has out '^    resend_count: 0$'
has out '^    successful_resends: 0$'
rails 0 net show -v 5 --net tcp1
expect "no samples" test "$(grep -cE '^ +samples: 0$' "$dir/out")" = 2
rails 0 net show -v 5 --net tcp
has out '^ +resend_count: 0$'
has out '^            +health value: 900$'
has out '^ +send_count: 0$'
expect "ping_count stays: $silent, then $(health ping_count)" \
	test "$(health ping_count)" -ge "$silent"
# It heals as soon as its pings are answered.
rails 0 fault error del --all
ctl_until '^ +health value: 1000$' --socket "$r" net show -v 2 --net tcp
ctl_until '^ +ping_count: 0$' --socket "$r" net show -v 2 --net tcp
has out '^ +next_ping: 0$'
rails 0 stats reset
rails 0 net show -v 2 --net tcp
sed -i -n '/health stats:/,/next_ping:/p' "$dir/out"
same out <<END
            health stats:
                  fatal_error: 0
                  health value: 1000
                  interrupts: 0
                  dropped: 0
                  aborted: 0
                  no route: 0
                  timeouts: 0
                  error: 0
                  ping_count: 0
                  next_ping: 0
END

# The same with a NID of the peer, whose health was lowered by hand.
rails 0 fault error add -m GET -x -e remote_dropped
rails 0 peer set --nid 127.0.0.14@tcp1 --health 400
ctl_until '^ +ping_count: [1-9]' --socket "$r" peer show -v 2 \
	--nid 127.0.0.12@tcp
silent=$(health ping_count 127.0.0.14)
expect "the other NID is not pinged" test "$(health ping_count 127.0.0.12)" = 0
ctl_until '^ +next_ping: 1$' --socket "$r" debug peer --nid 127.0.0.12@tcp
has out '^ +state: recovering$'
rails 0 debug recovery
same out <<END
Peer NI recovery:
      nid-0: 127.0.0.14@tcp1
END
rails 0 stats reset
rails 0 peer show -v 2 --nid 127.0.0.12@tcp
# Each ping that failed has cost it some.
expect "health falls" test "$(health 'health value' 127.0.0.14)" -lt 400
expect "ping_count stays" \
	test "$(health ping_count 127.0.0.14)" -ge "$silent"
expect "received again" test "$(health recv_count 127.0.0.14)" = 0
rails 0 fault error del --all
ctl_until '^ +health value: 1000$' --socket "$r" debug peer --nid 127.0.0.14@tcp1
stop_lnetd r
stop_lnetd q

# ---- calls ----

# Each call has its answer, and the right one, whatever becomes of messages.
need_rpcserve serve --net 'tcp(127.0.0.3)' --port "$port" --socket "$serve"
ctl 0 --socket "$serve" fault drop add --rate 7
ctl 0 --socket "$serve" fault delay add --rate 5 --latency 0.005
ctl 0 --socket "$serve" fault duplicate add --rate 3
ctl 0 --socket "$serve" fault error add --rate 11 -e random
ctl 0 --socket "$serve" fault corrupt add --rate 3 --portal 61
run 0 timeout 300 "$rpcping" --net 'tcp(127.0.0.1)' --port "$port" \
	--accept none --count 500 --inflight 8 --size 2000 --verify \
	--deadline 60 127.0.0.3@tcp
for kind in drop delay duplicate error; do
	struck "$serve" $kind
	ctl 0 --socket "$serve" fault $kind reset
	ctl 0 --socket "$serve" fault $kind show
	has out '^ +put: 0$'
done
finish
