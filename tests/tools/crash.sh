#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/crash: a durable service executes each call once, however often its node is
# killed; one that is not durable says which calls may have been executed; and the
# scenario finds a handler that stores no record of its calls.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

crash=$PWD/examples/crash

for wrong in "1 eternal" "one" "1x" "1 durable 2"; do
	run 2 "$crash" $wrong
	has err '^usage: crash \[SEED '
done

perhaps=0
for seed in {1..20}; do
	run 0 "$crash" "$seed"
	has out "^seed $seed, durable: [1-9][0-9]* crashes in .* of 500 calls 500 were executed, 0 not, 0 perhaps; the account has 500;"
	run 0 "$crash" "$seed" volatile
	has out "^seed $seed, volatile: [1-9][0-9]* crashes "
	! grep -qE ' [1-9][0-9]* perhaps' "$dir/out" || perhaps=$((perhaps + 1))
done
expect "some calls to the volatile service may have been executed" \
	test $perhaps -gt 0

# The same seed is the same run; another one is another.
run 0 "$crash" 7
mv "$dir/out" "$dir/first"
run 0 "$crash" 7
same out <"$dir/first"
run 0 "$crash" 8
expect "seeds 7 and 8 are different runs" \
	test "$(sed 's/.*digest//' "$dir/first")" != "$(sed 's/.*digest//' "$dir/out")"

# The mistake is found, with the command that shows it again.
found=0
for seed in {1..20}; do
	checks=$((checks + 1)) ran="crash $seed forgetful"
	"$crash" "$seed" forgetful >"$dir/out" 2>"$dir/err" && continue
	has err "^sim: seed $seed, at [0-9]* ns: the account has [0-9]* after 500 calls$"
	has err "^sim: to repeat: $crash $seed forgetful$"
	found=$((found + 1))
done
expect "the handler that stores no records is found" test $found -gt 0
finish
