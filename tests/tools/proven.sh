# SPDX-License-Identifier: BSD-3-Clause
# What the tests of services with keys share, in the place of lib.sh: for sourcing.
#
#	$ulnet_keys		the program
#	$port, $server		where the service is to be
#	client=()		what rpcping needs to get there
#	$keys			a folder for keys, which is not there yet
. "${srcdir:-.}/tests/tools/lib.sh" || exit

ulnet_keys=$tools/ulnet-keys
[ -x "$ulnet_keys" ] || skip "built without OpenSSL"
free_port port || skip "perl cannot find a free port"
client=(--net 'tcp(127.0.0.1)' --port "$port" --deadline 60 --count 10)
server=127.0.0.2@tcp
keys=$dir/keys
