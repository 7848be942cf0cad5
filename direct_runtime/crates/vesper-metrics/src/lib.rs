//! Counters, gauges and histograms in memory that processes share.
