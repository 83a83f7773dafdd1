#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client calls a server over two rails, every byte verified, and one of the rails
# is taken away and given back: its link, its address, its frames, of either side.
# No call is lost, the other rail carries them meanwhile, and afterwards both do:
# requirements C, D, G6.
. "${srcdir:-.}/tests/net/hosts.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
. "${srcdir:-.}/tests/tools/lib.sh" || exit
. "${srcdir:-.}/tests/net/harm.sh" || exit

serve tcp tcp
all_harms "calls" half --inflight 16
calls=$much
much=$large
all_harms "bulk read" half --inflight 4 --bulk-read 300k
all_harms "bulk written" half --inflight 4 --bulk-write 300k
much=$calls
client+=(--accept all)
lose "client listens: link down" client_link_down alone client_link_up \
	--inflight 16
lose "client listens: frames lost" lose_both alone wire_whole --inflight 16
stop_lnetd server
serve tcp tcp1
all_harms "two nets" alone --inflight 16
stop_lnetd server
hosts_join || complain "no IP network for both rails"
serve tcp tcp
lose "one IP network: client's link down" client_link_down alone \
	client_link_up --inflight 16
lose "one IP network: server's link down" server_link_down both \
	server_link_up --inflight 16
lose "one IP network: server's address removed" server_address_del both \
	server_address_add --inflight 16
lose "one IP network: cable out" cable_out both cable_in --inflight 16
finish
