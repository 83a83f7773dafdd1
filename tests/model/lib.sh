# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that check a model with spin: for sourcing, by one whose
# $model is the model, and whose folder is its to write to. Counts in $bad.
bad=0

# explore -D...: looks at all states, up to the first that is wrong. Prints what
# was found; 0 all is well, 1 there is one, 2 it could not be done.
explore() {
	spin -a "$@" "$model" >said 2>&1 &&
		gcc -O1 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 -o pan pan.c \
			>>said 2>&1 &&
		timeout 3600 nice ./pan -m200000 >said 2>&1
	grep -E '^pan:1:' said && return 1
	! grep -E '^error:|Search not completed' said &&
		grep -q 'errors: 0$' said || return 2
	sed -nE 's/ *([0-9]+) states, stored.*/\1 states/p' said
}

# holds WHAT -D...
holds() {
	local what=$1 found

	shift
	if found=$(explore "$@"); then
		echo "holds, $found: $what"
		return
	fi
	echo "FAILED: $what: $found"
	tail -n 20 said
	bad=$((bad + 1))
}

# found_out RULE -D...: the model with that rule broken.
found_out() {
	local rule=$1 found

	shift
	found=$(explore "-D$rule" "$@")
	if [ $? = 1 ]; then
		echo "found out: $rule: $found"
		return
	fi
	echo "FAILED: nobody notices $rule: $found"
	bad=$((bad + 1))
}

# none_forgotten SCRIPT: are all rules of the model tried?
none_forgotten() {
	local rule

	for rule in $(grep -oE '\b(BREAK|SEE)_[A-Z_]*[A-Z]\b' "$model" | sort -u); do
		grep -qw "$rule" "$1" || {
			echo "FAILED: $rule is not tried"
			bad=$((bad + 1))
		}
	done
}
