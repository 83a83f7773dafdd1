# Measurements; not part of make check. Source of %D%/NAME is %D%/NAME.c.
#
#	noinst_PROGRAMS += %D%/NAME             (not in a build with fuzzers)
