# What o2ibcalc reads: fuzzed, too.
o2ibcalc_input_sources = %D%/o2ibcalc_input.c %D%/o2ibcalc_yaml.c %D%/o2ibcalc.h

tools_bin_o2ibcalc_SOURCES = %D%/o2ibcalc.c $(o2ibcalc_input_sources)
tools_bin_o2ibcalc_SOURCES += %D%/o2ibcalc_report.c
# The tree of YAML is hidden in the library, and knows nothing of LNet.
tools_bin_o2ibcalc_SOURCES += config/yaml/tree.c config/yaml/tree.h
tools_bin_o2ibcalc_LINK = $(INSTALLED_LINK)
tools_bin_o2ibcalc_LDADD = libtools.a $(libulnet) $(YAML_LIBS)
