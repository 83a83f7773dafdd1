# What o2ibcalc reads: fuzzed, too.
o2ibcalc_input_sources = %D%/o2ibcalc_input.c %D%/o2ibcalc_input.h
o2ibcalc_input_sources += %D%/o2ibcalc_yaml.c %D%/o2ibcalc_yaml.h

tools_bin_o2ibcalc_SOURCES = %D%/o2ibcalc.c
tools_bin_o2ibcalc_SOURCES += %D%/o2ibcalc_document.c
tools_bin_o2ibcalc_SOURCES += %D%/o2ibcalc_options.c %D%/o2ibcalc_options.h
tools_bin_o2ibcalc_SOURCES += %D%/o2ibcalc_table.c %D%/o2ibcalc_report.h
tools_bin_o2ibcalc_SOURCES += %D%/o2ibcalc_value.c %D%/o2ibcalc_value.h
tools_bin_o2ibcalc_SOURCES += %D%/o2ibcalc_what_if.c
tools_bin_o2ibcalc_SOURCES += $(o2ibcalc_input_sources)
# The tree of YAML is hidden in the library, and knows nothing of LNet.
tools_bin_o2ibcalc_SOURCES += config/tree.c config/tree.h config/parse.c config/emit.c
tools_bin_o2ibcalc_LINK = $(INSTALLED_LINK)
tools_bin_o2ibcalc_LDADD = libtools.a $(libulnet) $(YAML_LIBS)
