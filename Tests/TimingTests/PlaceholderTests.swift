internal import Testing

@Suite struct TimingPlaceholderTests {}
