/// Which of a host's addresses is tried: each in turn until one answers, and that one until it is silent three times.
struct AddressSearch: Sendable {
    enum Result: Sendable {
        case found, searching
        /// The address that answered until now is given up.
        case lost
    }

    private var index: Int
    private var silentBursts = 0
    private var isFound = false

    init(startingAt index: Int = 0) { self.index = index }

    /// The address to try now; nil when there is none at all.
    func current<Address>(of addresses: [Address]) -> Address? {
        addresses.isEmpty ? nil : addresses[index % addresses.count]
    }

    /// Takes the outcome of a burst in.
    mutating func note(answered: Bool, of count: Int) -> Result {
        if answered {
            silentBursts = 0
            isFound = true
            return .found
        }
        silentBursts += 1
        if isFound && silentBursts < 3 { return .found }
        let wasFound = isFound
        isFound = false
        silentBursts = 0
        index = count == 0 ? 0 : (index + 1) % count
        return wasFound ? .lost : .searching
    }
}
