internal import Testing

@Suite struct DevicesPlaceholderTests {}
