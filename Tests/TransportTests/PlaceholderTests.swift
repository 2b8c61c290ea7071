internal import Testing

@Suite struct TransportPlaceholderTests {}
