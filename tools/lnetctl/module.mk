tools_bin_lnetctl_SOURCES = %D%/lnetctl.c
tools_bin_lnetctl_SOURCES += %D%/command.c %D%/command.h
tools_bin_lnetctl_SOURCES += %D%/command_table.c
tools_bin_lnetctl_SOURCES += %D%/host.c
tools_bin_lnetctl_SOURCES += %D%/top.c %D%/top_rpc.c
tools_bin_lnetctl_LINK = $(INSTALLED_LINK)
tools_bin_lnetctl_LDADD = libtools.a $(libulnetctl) $(MICROHTTPD_LIBS)
