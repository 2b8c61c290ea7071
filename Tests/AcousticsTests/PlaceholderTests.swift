internal import Testing

@Suite struct AcousticsPlaceholderTests {}
