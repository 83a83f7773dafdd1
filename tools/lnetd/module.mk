tools_bin_lnetd_SOURCES = %D%/lnetd.c
tools_bin_lnetd_SOURCES += %D%/daemon.c %D%/daemon.h %D%/waiting.c %D%/waiting.h
tools_bin_lnetd_LINK = $(INSTALLED_LINK)
tools_bin_lnetd_LDADD = libtools.a liblst.a $(libulrpc) $(libulnetctl) $(MICROHTTPD_LIBS)
