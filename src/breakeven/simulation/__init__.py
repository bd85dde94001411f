"""A discrete-event simulation of an engine on a deployment: arrays in, arrays out, its steps priced by the ledgers."""
