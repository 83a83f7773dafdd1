# Programs to be installed. They use what is installed and nothing else: the
# public headers, and libulnet.la.
sbin_PROGRAMS =
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completion/lnetctl %D%/completion/lnetd

if !WITH_FUZZERS
sbin_PROGRAMS += %D%/lnetctl %D%/lnetd
endif

%C%_lnetctl_SOURCES = %D%/lnetctl.c
%C%_lnetctl_SOURCES += %D%/command.c %D%/command.h
%C%_lnetctl_SOURCES += %D%/command_table.c %D%/command_help.c
%C%_lnetctl_SOURCES += %D%/request.c %D%/request.h
%C%_lnetctl_SOURCES += %D%/file.c %D%/file.h
%C%_lnetctl_SOURCES += %D%/words.c %D%/words.h
%C%_lnetctl_LDADD = libulnet.la

%C%_lnetd_SOURCES = %D%/lnetd.c
%C%_lnetd_SOURCES += %D%/lnetd_options.c %D%/lnetd_options.h
%C%_lnetd_SOURCES += %D%/daemon.c %D%/daemon.h
%C%_lnetd_SOURCES += %D%/notify.c %D%/notify.h
%C%_lnetd_SOURCES += %D%/pidfile.c %D%/pidfile.h
%C%_lnetd_SOURCES += %D%/request.c %D%/request.h
%C%_lnetd_SOURCES += %D%/file.c %D%/file.h
%C%_lnetd_LDADD = libulnet.la

EXTRA_DIST += %D%/lnetd.service.in

# Directories are known to make only, not to configure.
%D%/lnetd.service: %D%/lnetd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	sed -e 's,[@]sbindir[@],$(sbindir),g' \
		-e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/%D%/lnetd.service.in >$@.tmp && mv $@.tmp $@
CLEANFILES += %D%/lnetd.service
noinst_DATA = %D%/lnetd.service
if WITH_SYSTEMD_UNIT
nodist_systemdsystemunit_DATA = %D%/lnetd.service
endif
