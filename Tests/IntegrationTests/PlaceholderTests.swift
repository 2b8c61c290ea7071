internal import Testing

@Suite struct IntegrationPlaceholderTests {}
