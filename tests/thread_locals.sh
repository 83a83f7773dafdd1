#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The libraries reach the variables of a thread without a call: each of these is declared
# and defined with the model "initial-exec". By the default model of a shared library a
# function of the dynamic linker would be called for each use, many times in each turn of
# a loop, and bench/budget, which is linked statically, would not show it.
set -uo pipefail
bad=0
for lib in ulnet ulrpc; do
	[ -e ".libs/lib$lib.so" ] || exit 77 # built without shared libraries
	found=$(readelf --dyn-syms -r -W ".libs/lib$lib.so") || exit 1
	if grep -wE "__tls_get_addr|R_[A-Z0-9_]*(TLSDESC|DTPMOD)[A-Z0-9]*" \
		<<<"$found"; then
		echo "lib$lib calls a function for a variable of a thread"
		bad=1
	fi
done
exit $bad
