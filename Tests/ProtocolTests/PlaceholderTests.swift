internal import Testing

@Suite struct ProtocolPlaceholderTests {}
