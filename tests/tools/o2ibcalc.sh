#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# o2ibcalc: what it prints, and what it says of input that is wrong (requirement F7).
. "${srcdir:-.}/tests/tools/lib.sh" || exit
# Messages name files as they were given.
program=$PWD/tools/bin/o2ibcalc
cd "$dir" || exit

calc() { # STATUS ARGUMENT...
	run "$1" "$program" "${@:2}"
}

# json CONDITION ARGUMENT...: a run with --json, on one line. The condition is
# Perl's, on $j, the object, and $r, its result.
json() {
	run "$status" "$program" --json "${@:2}"
	expect "$ran: one line" test "$(wc -l <out)" = 1
	expect "$ran: not so: $1" perl -MJSON::PP -e '
		local $/;
		my $j = decode_json(<STDIN>);
		my $r = $j->{result};
		exit !(eval $ARGV[0]);' "$1" <out
}
status=0

# ---- the table ----

calc 0 --a model=2.10.54,kernel=3.10.0-693,peer_credits=16,map_on_demand=32 \
	--b model=2.10.54,kernel=693,peer_credits=4
silent err
same out <<'END'
Tunables, as adjusted              A             B
  model                      2.10.54       2.10.54
  kernel                  3.10.0-693           693
  global_mr                       no            no
  registration               fastreg       fastreg
  peer_credits                    16            8*
  credits                        256           256
  peer_credits_hiw                 8             4
  concurrent_sends                32             8
  map_on_demand                   32           256
  ntx                            512           512
  fmr_pool_size                  512           512
  fmr_flush_trigger              384           384
  ncpts                            1             1
  conns_per_peer                   1             1
  wrq_sge                          2             2
  max_qp_wr                  unknown       unknown
  max_cqe                    unknown       unknown
  page_size                     4096          4096

  * B: peer_credits 4 becomes 8: 8 is the least

Limits                             A             B
  starts                         yes           yes   the NI starts
  pools                          yes           yes   pools of memory regions
  wrs_extra                        2             2   work requests to register
  depth_max                       16             8   deepest queue
  frags_offered                   32           256   fragments, if it asks
  frags_accepted                  32           256   fragments, if it is asked

A asks B for a connection
  1. depth 16, 32 fragments: rejected, depth 8 at most
  2. depth 8, 32 fragments: accepted

Connected: queue depth 8, 32 fragments

One connection                     A             B
  hiw                              8             4   credits owed that are returned at once
  concurrent_sends                32             8   on this connection
  max_recv_wr                     18            18   messages that can come, posted
  rx_bytes                     73728         73728   their memory
  rx_pages                        18            18   the same in pages
  max_send_wr                   1056           264   work requests of the send queue
  cq_entries                    1074           282   entries of the completion queue
  posted_max                      32             8   messages sent, not completed, at most
  bulk_wrs                         4             4   work requests of a bulk message
  typical_wrs                    128            32   in use: all posted are bulk
  worst_wrs                     1120           280   in use: all fragments of all
  worst_percent                  106           106   ... in percent of max_send_wr
  wire_messages                    8             8   messages on their way, each way
  wire_answers                     8             8   answers on their way, each way

One pair of NIs                    A             B
  conns                            1             1   connections
  peer_recv_wr                    18            18   messages that can come
  peer_send_wr                  1056           264   work requests of send queues
  peer_cq_entries               1074           282   entries of completion queues
  peer_rx_bytes                73728         73728   memory of messages that can come

Node, 1 peer                       A             B
  tx_buffers                     512           512   messages to be sent, at first
  tx_bytes                   2097152       2097152   their memory
  mr_regions                     512           512   memory regions in pools
  mr_pages                       256           256   pages of each
  node_rx_bytes                73728         73728   memory of messages that can come
END

# No connection, and why; warnings.
calc 1 --a model=2.10.54,kernel=514 --b model=2.10.54,map_on_demand=32
has out '^  1. depth 8, 256 fragments: rejected, 32 fragments at most$'
has out '^No connection: the acceptor allows fewer fragments, and the initiator'
has out '^error: A and B: max_frags: up to 2.14'
calc 1 -i b --a model=2.10.54,kernel=514 --b model=2.10.54,map_on_demand=32
has out '^  1. depth 8, 32 fragments: rejected, 256 fragments or nothing$'
has out '^No connection: the acceptor, which has nothing but'
calc 1 --b fmr_pool_size=127
has out '^No connection: an NI does not start$'
has out '^error: B: fmr_pool_size: 127 < 512 / 4: fmr_pool_size below'
calc 0 --both model=2.11 --a peer_credits=32,peer_credits_hiw=24
has out '^warning: A: hiw: 24 > 8: hiw above the depth'
calc 1 --b max_cqe=100
has out '^error: B: cq_entries: 2098 > 100: '
has out '^  cq_entries '
calc 1 --both max_cqe=100
has out '^error: A: cq_entries: 2098 > 100: the initiator makes'
has out "^No connection: the initiator's device has no completion queue"
calc 0 --both max_qp_wr=2000 --a model=2.10.54
has out '^  max_send_wr_granted +1542 +1813 '
has out '^warning: A: max_send_wr_granted: 2056 > 2000: '
calc 0 --both peer_credits=64 --b max_qp_wr=16384
has out '^  1. depth 64, 257 fragments: accepted, with depth 63'

# ---- why ----

calc 0 --explain
has out '^  A        max_send_wr = 2080 \(\(257 \+ 1 \+ 2\) \* 8\)$'
has out '^           since 2.11: fragments, one more, .* \[send.registration\]$'
calc 0 --explain --a peer_credits=300,registration=global
has out '^  A        peer_credits = 255, not 300$'
has out '^  A        registration = fastreg, not global$'

# ---- what if ----

calc 0 --what-if concurrent_sends=5 --both model=2.10.54
sed -n '/^What if/,$p' out >what && mv what out
same out <<'END'
What if concurrent_sends of A and B were
                                 now           5           4           8          16
  connected                      yes         yes         yes         yes         yes
  queue_depth                      8           8           8           8           8
  max_frags                      256         256         256         256         256
  rejects                          0           0           0           0           0
  hiw                              4           4           4           4           4
  concurrent_sends                 8           5           4           8          16
  max_recv_wr                     18          18          18          18          18
  rx_bytes                     73728       73728       73728       73728       73728
  max_send_wr                   2056        1285        1028        2056        4112
  cq_entries                    2074        1303        1046        2074        4130
  posted_max                       8           5           4           8          16
  typical_wrs                     32          20          16          32          64
  worst_wrs                     2072        1295        1036        2072        4144
  node_rx_bytes                73728       73728       73728       73728       73728
  A and B: max_send_wr is (max_frags + 1) * concurrent_sends, and the completion queue grows with it; above the device's max_qp_wr the queue pair is not created as asked for.
  5: warning: A: concurrent_sends: 5 < 8: concurrent_sends below peer_credits: not all credits of a peer can be used at once
  5: warning: B: concurrent_sends: 5 < 8: concurrent_sends below peer_credits: not all credits of a peer can be used at once
  4: warning: A: concurrent_sends: 4 < 8: concurrent_sends below peer_credits: not all credits of a peer can be used at once
  4: warning: B: concurrent_sends: 4 < 8: concurrent_sends below peer_credits: not all credits of a peer can be used at once
  16: warning: A: concurrent_sends 16 is above the depth 8: credits are the limit, not sends
  16: warning: B: concurrent_sends 16 is above the depth 8: credits are the limit, not sends
END
calc 0 --what-if concurrent_sends --a model=2.11 --b model=2.12
has out '^  A: concurrent_sends has no effect\.$'
has out '^  B: work requests do not depend on concurrent_sends'
calc 0 --what-if a.peer_credits=16,32 -w map_on_demand=32 --both model=2.10
has out '^What if peer_credits of A were$'
has out '^  rejects +0 +1 +1$'
has out '^  A: concurrent_sends +8 +16 +32$'
has out '^  B: concurrent_sends +8 +8 +8$'
has out '^What if map_on_demand of A and B were$'
has out '^  max_frags +256 +32$'
has out '^  A and B: map_on_demand limits the fragments'
# Of what is the answer: the exit status is that of what is, not of what were.
calc 0 --what-if fmr_pool_size=1
has out '^  connected +yes +no$'
has out '^  1: error: A: fmr_pool_size: 1 < 512 / 4'

# ---- YAML and JSON ----

mixed=(--a model=user,pieces=3 --b 'model=2.12,kernel=514,map_on_demand=0'
	-i B -n 100 --what-if credits=4,8 --explain)
calc 0 "${mixed[@]}" --yaml
cp out first.yaml
calc 0 --yaml --what-if credits=4,8 --explain first.yaml
expect "YAML that is read in again gives the same" cmp -s first.yaml out
calc 0 --yaml - <first.yaml
sed '/^    explain:/,$d' first.yaml >a
sed '/^    explain:/,$d' out >b
expect "the same from stdin" cmp -s a b
if python3 -c 'import yaml' 2>/dev/null; then
	run 0 "$program" "${mixed[@]}" --json
	expect "YAML and JSON are the same" python3 -c '
import json, yaml
assert json.load(open("out")) == yaml.safe_load(open("first.yaml"))'
fi
json '$j->{a}{model} eq "2.15" && $j->{b}{peer_credits} == 8 &&
	$j->{initiator} eq "A" && $j->{npeers} == 1 && $r->{connected} &&
	$r->{queue_depth} == 8 && $r->{max_frags} == 257 && $r->{rejects} == 0 &&
	$r->{a}{tunables}{concurrent_sends} == 8 && $r->{b}{max_send_wr} == 2080 &&
	@{$r->{attempts}} == 1 && !@{$r->{warnings}} && !exists $r->{explain}'
json '$r->{changes}[0]{rule} eq "peer_credits.min" &&
	$r->{changes}[0]{before} == 4 && $r->{changes}[0]{of} eq "A"' \
	--a peer_credits=4
json '@{$r->{explain}} > 40 && !grep { !$_->{rule} || !$_->{text} }
	@{$r->{explain}}' --explain
json '$j->{what_if}[0]{of} eq "B" && @{$j->{what_if}[0]{values}} == 2 &&
	$j->{what_if}[0]{values}[1]{queue_depth} == 7' --a peer_credits=32 \
	--what-if b.credits=6,7
status=1
json '!$r->{connected} && $r->{reason} =~ /does not start/ &&
	!exists $r->{a}{max_send_wr} && $r->{errors}[0]{rule} eq "fmr_pool_size.min"' \
	--a fmr_pool_size=1
status=0

# ---- files ----

cat >pair.yaml <<'END'
Both: {peer_credits: 32, kernel: 3.10.0-514.el7.x86_64, global_mr: no}
a: {model: 2.10, map_on_demand: 64}
B:
    model: 2.10
    peer_credits: 16
initiator: b
npeers: 10
END
# What stands on the command line counts more, and of one node more than of both.
calc 0 pair.yaml
has out '^  peer_credits +32 +16$'
has out '^  kernel +3.10.0-514.el +3.10.0-514.el$'
has out '^  global_mr +no +no$'
has out '^B asks A'
has out '^Node, 10 peers'
calc 0 -a peer_credits=24 pair.yaml -n 3 --both credits=20
has out '^  peer_credits +20\* +16$'
has out '^Node, 3 peers'

# As the kernel's lnetctl shows it.
cat >shown.yaml <<'END'
net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: o2ib
      local NI(s):
        - nid: 10.1.1.1@o2ib
          status: up
          interfaces:
              0: ib0
          statistics:
              send_count: 3
          tunables:
              peer_timeout: 180
              peer_credits: 16
              peer_buffer_credits: 0
              credits: 256
          lnd tunables:
              peercredits_hiw: 9
              concurrent_sends: 20
              map_on_demand: true
              fmr_pool_size: 512
              fmr_flush_trigger: 384
              fmr_cache: 1
              ntx: 1024
              conns_per_peer: 2
              timeout: 49
              tos: -1
          dev cpt: 0
          CPT: "[0]"
END
calc 0 shown.yaml --b model=2.16
has out '^  peer_credits +16 +16$'
has out '^  peer_credits_hiw +9 +9$'
has out '^  concurrent_sends +20 +20$'
has out '^  ntx +1024 +1024$'
has out '^  conns_per_peer +2 +2$'
silent err
calc 0 --a registration=FMR
has out '^  registration +fmr +fastreg$'
calc 0 --b-file shown.yaml --b ntx=600
has out '^  peer_credits +8 +16$'
has out '^  ntx +512 +600$'
(echo a: && sed 's/^/  /' shown.yaml && echo '  model: 2.14') >in_a.yaml
calc 0 in_a.yaml
has out '^  model +2.12 +2.15$'
has out '^  concurrent_sends +20 +8$'
perl -0pe 's/(        - nid: 10.1.1.)1(.*)/${1}2$2$&/s' shown.yaml >two.yaml
calc 0 two.yaml
same err <<'END'
o2ibcalc: two.yaml: 10.1.1.2@o2ib is used, the first of 2 NIs on o2ib nets
END

# ---- what was negotiated ----

cat >peers.yaml <<'END'
peer:
    - primary nid: 10.1.1.9@o2ib
      Multi-Rail: True
      peer ni:
        - nid: 10.1.1.9@o2ib
          connections:
            - queue_depth: 8
              max_frags: 257
            - queue_depth: 16
              max_frags: 256
        - nid: 10.1.1.8@o2ib
          queue_depth: 8
END
calc 1 --negotiated peers.yaml
sed -n '/^peers/p' out >lines && mv lines out
same out <<'END'
peers.yaml:9: 10.1.1.9@o2ib: queue_depth is 16; 8 was predicted
peers.yaml:9: 10.1.1.9@o2ib: max_frags is 256; 257 was predicted
END
status=1
json '!$j->{negotiated}{as_predicted} && $j->{negotiated}{connections} == 3 &&
	@{$j->{negotiated}{differences}} == 1 &&
	$j->{negotiated}{differences}[0]{queue_depth} == 16' --negotiated peers.yaml
status=0
echo '{queue_depth: 8, max_frags: 257}' >one.yaml
calc 0 --negotiated one.yaml
has out '^one.yaml: as predicted: 1 connection$'
calc 1 --negotiated one.yaml --a fmr_pool_size=0
has out '^one.yaml:1: connected; no connection was predicted$'
calc 2 --negotiated shown.yaml
has err '^o2ibcalc: shown.yaml: no connection: neither queue_depth nor max_frags'
echo '{queue_depth: many}' >one.yaml
calc 2 --negotiated one.yaml
has err '^o2ibcalc: one.yaml:1: queue_depth: a number from 0 to 65535 is expected$'

# ---- bad input ----

# refused ARGUMENTS MESSAGE [NEAREST]: one error, no output.
refused() {
	calc 2 $1
	silent out
	has err "^o2ibcalc: $2"
	expect "$ran: one error" test "$(grep -c '^o2ibcalc' err)" = 1
	if [ -n "${3:-}" ]; then
		has err "^Did you mean '$3'\\?\$"
	else
		expect "$ran: no guess" test "$(wc -l <err)" = 1
	fi
}
refused '--a peer_credit=16' '--a: peer_credit: there is no such input$' peer_credits
refused '--b concurent_sends=16' '--b: concurent_sends: there is no such' concurrent_sends
refused '--both ntx=5,banana=1' '--both: banana: there is no such input$'
refused '--a model=2.9' '--a: model: 2.9: there are: 2.10.54, 2.10, 2.11, .*, user$'
refused '--a model=usr' '--a: model: usr: there are' user
refused '--a registration=fastrg' '--a: registration: fastrg: there are: ' fastreg
refused '--a peer_credits=x' '--a: peer_credits: x: a number from 0 to 65535 is'
refused '--a peer_credits=-1' '--a: peer_credits: -1: a number from'
refused '--a peer_credits=1.5' '--a: peer_credits: 1.5: a number from'
refused '--a peer_credits=' '--a: peer_credits: : a number from'
refused '--a credits=0' '--a: credits: 0: a number from 1'
refused '--a peer_credits' "--a: 'peer_credits': NAME=VALUE is expected"
refused '-a peer_credits 16' "--a: 'peer_credits': NAME=VALUE is expected"
refused 'peer_credits=9' 'peer_credits=9: whose\? Say --a, --b or --both'
refused '--a.peer_credits 9' "unrecognized option '--a.peer_credits'" '--a peer_credits=VALUE'
refused '-a ,' "--a: '': NAME=VALUE is expected"
refused '--a page_size=5000' '--a: page_size: 5000: a power of 2'
refused '--a version=3' '--a: version: 3: a number from 1 to 2'
refused '--a max_qp_wr=none' '--a: max_qp_wr: none: .*, or unknown is'
refused '--a map_on_demand=on' '--a: map_on_demand: on: .* default is expected'
refused '--a global_mr=maybe' '--a: global_mr: maybe: yes, no or kernel is'
refused '--a kernel=banana' '--a: kernel: banana: a release such as'
refused '--what-if peer_credit=1' '--what-if: peer_credit: there is no' peer_credits
refused '--what-if c.peer_credits=1' '--what-if: c.peer_credits: there is no' peer_credits
refused '--what-if peer_credits' '--what-if: peer_credits: NAME=VALUE\[,VALUE\]'
refused '--what-if peer_credits=1,x' '--what-if: peer_credits: x: a number'
refused '--initiator C' '--initiator C: A or B is expected'
refused '--npeers 0' '--npeers 0: a number from 1'
refused '--explian' "unrecognized option '--explian'" --explain
refused '--a' "option '--a' requires an argument"
refused '--yaml --json' '--yaml and --json: one of them'
refused 'pair.yaml shown.yaml' 'unexpected argument: shown.yaml'
refused 'none.yaml' 'none.yaml: No such file'
refused '--a-file none.yaml' 'none.yaml: No such file'

# file TEXT MESSAGE [NEAREST]
file() {
	printf '%b' "$1" >bad.yaml
	refused bad.yaml "bad.yaml:$2" "${3:-}"
}
file 'a:\n  peer_creditz: 1\n' '2: peer_creditz: there is no such input' peer_credits
file 'a:\n  credits: 9\n  credits: 9\n' "3: key 'credits' comes twice"
file 'a: {}\na: {}\n' "2: key 'a' comes twice"
file 'a: {}\nA: {}\n' '2: a is there twice'
file 'a: {peer_credits_hiw: 4, peercredits_hiw: 4}' '1: peer_credits_hiw is there twice'
file 'a: {peer_credits: []}' '1: peer_credits: a value is expected'
file 'a: {[]: 1}' '1: a key must be a text'
file 'a: 5' '1: inputs such as'
file 'a: {model: 3}' '1: model: 3: there are'
file 'peer_credits: 8\n' '1: peer_credits: of "a:", "b:" or "both:"\?'
file 'initiater: a' '1: initiater: there are a, b, both' initiator
file 'initiator: c' '1: initiator: c: A or B'
file 'npeers: -1' '1: npeers: -1: a number'
file '- 1' '1: "a:" and "b:" are expected'
file '' ' there is nothing in it'
file 'a: {' '2: did not find'
file 'net: []' '1: no NI is on an o2ib net'
file 'net: [{net type: o2ib, local NI(s): [{nid: 10.0.0.1@o2ib}]}]' \
	'1: 10.0.0.1@o2ib has no "lnd tunables": show it with "lnetctl net show -v 4"'
printf '&x [*x]' >bad.yaml
refused '--negotiated bad.yaml' 'bad.yaml:1: anchors and aliases are not supported'

# ---- the rest ----

calc 0 --help
has out '^usage: o2ibcalc '
calc 0 --version
has out '^o2ibcalc \('
if [ -w /dev/full ]; then
	expect "a full disk is noticed" bash -c '! "$0" >/dev/full 2>err' "$program"
	has err '^o2ibcalc: stdout: '
fi
finish
