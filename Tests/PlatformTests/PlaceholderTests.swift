internal import Testing

@Suite struct PlatformPlaceholderTests {}
