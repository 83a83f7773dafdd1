# Programs for users to read. They use what is installed and nothing else:
#
#	noinst_PROGRAMS += %D%/NAME             (not in a build with fuzzers)
#	%C%_NAME_LDADD = libulnet.la
if !WITH_FUZZERS
noinst_PROGRAMS += %D%/demo %D%/depot
endif
%C%_demo_LDADD = libulnet.la
%C%_depot_LDADD = libulnet.la

EXTRA_DIST += %D%/demo_tcp.sh
