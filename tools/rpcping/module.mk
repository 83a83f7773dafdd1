tools_bin_rpcping_SOURCES = %D%/rpcping.c
tools_bin_rpcping_SOURCES += %D%/rpcping_load.c %D%/rpcping_load.h
tools_bin_rpcping_SOURCES += %D%/rpcping_options.c %D%/rpcping_options.h
tools_bin_rpcping_SOURCES += %D%/rpcping_report.c %D%/rpcping_report.h
tools_bin_rpcping_SOURCES += %D%/histogram.c %D%/histogram.h
tools_bin_rpcping_LINK = $(INSTALLED_LINK)
tools_bin_rpcping_LDADD = libtools.a libservices.a $(libulrpc) $(libulnetctl) $(PROTOBUF_C_LIBS)
